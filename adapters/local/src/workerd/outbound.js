// Routes the outbound requests of a worker: requests to additional services go directly to them, all others to the
// network.
export default {
  fetch(request, env) {
    const { protocol, host } = new URL(request.url);
    const service = protocol === "http:" && Object.hasOwn(env, host) ? env[host] : env.internet;
    return service.fetch(request);
  },
};
