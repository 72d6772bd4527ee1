// The initial version of a feature's service. It only reports its health. The default export of `./config.js` is the
// configuration that the feature was activated with.
export default {
  fetch(request) {
    if (new URL(request.url).pathname === "/health") {
      return Response.json({ status: "healthy" });
    }
    return new Response("Not found", { status: 404 });
  },
};
