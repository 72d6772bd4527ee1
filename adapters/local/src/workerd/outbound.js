// What a worker fetches: from services that it is let reach wherever they run, and else from where the network allows.
export default {
  fetch(request, env) {
    const { protocol, host } = new URL(request.url);
    const service = protocol === "http:" && Object.hasOwn(env, host) ? env[host] : env.internet;
    return service.fetch(request);
  },
};
