// The initial version of a service of a stack. It only reports its health, including that of its database, if it has one.
export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname !== "/health") {
      return new Response("Not found", { status: 404 });
    }
    try {
      await env.DB?.prepare("SELECT 1").first();
      return Response.json({ status: "healthy" });
    } catch {
      return Response.json({ status: "degraded", checks: { database: "down" } });
    }
  },
};
