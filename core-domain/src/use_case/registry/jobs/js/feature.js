// The first version of a feature's service: it is there, and has nothing to say yet.
export default {
  fetch(request) {
    if (new URL(request.url).pathname === "/health") {
      return Response.json({ status: "healthy" });
    }
    return new Response("Not found", { status: 404 });
  },
};
