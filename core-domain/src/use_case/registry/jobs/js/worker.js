// The initial version of a platform's API. It reports its health and shows that each of its bindings works.
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/health") {
      return Response.json({ status: "healthy" });
    }
    if (url.pathname === "/visits" && request.method === "POST") {
      const visits = Number((await env.CACHE.get("visits")) ?? "0") + 1;
      await env.CACHE.put("visits", String(visits));
      await env.EVENTS.send({ type: "visit", visits });
      return Response.json({ visits });
    }
    if (url.pathname.startsWith("/assets/")) {
      const object = await env.ASSETS.get(url.pathname.slice("/assets/".length));
      return object ? new Response(object.body) : new Response("Not found", { status: 404 });
    }
    if (url.pathname === "/time") {
      const row = await env.DB.prepare("SELECT unixepoch() AS now").first();
      return Response.json(row);
    }
    return new Response("Not found", { status: 404 });
  },
};
