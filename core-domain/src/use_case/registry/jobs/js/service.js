// The first version of a service of a stack: it is there, says whether its database answers if it has one, and has nothing
// else to say yet.
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
