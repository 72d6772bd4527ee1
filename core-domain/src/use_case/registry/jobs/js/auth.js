// Identifies the caller of a request: sends its bearer token to IAM, and accepts sessions that act for this platform.
import { platformId, sessionUrl, version } from "./config.js";

const answer = (status, body, headers = {}) =>
  Response.json(body, { status, headers: { "cache-control": "no-store", ...headers } });

const refusal = (status, code, message, headers) =>
  answer(status, { error: { code, message, details: {} } }, headers);

const unauthorized = () =>
  refusal(401, "UNAUTHORIZED", "A valid bearer token is needed.", { "www-authenticate": "Bearer" });

const unavailable = () => refusal(503, "SERVICE_UNAVAILABLE", "Nobody can be let in at the moment.");

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/health") {
      return answer(200, { status: "healthy", version });
    }
    if (pathname !== "/session") {
      return refusal(404, "NOT_FOUND", "There is no such resource.");
    }
    const authorization = request.headers.get("authorization") ?? "";
    if (!/^Bearer [^\s]+$/i.test(authorization)) {
      return unauthorized();
    }
    let asked;
    try {
      asked = await fetch(sessionUrl, { headers: { authorization }, redirect: "manual" });
    } catch {
      return unavailable();
    }
    if (asked.status === 401 || asked.status === 403) {
      return unauthorized();
    }
    if (!asked.ok) {
      return unavailable();
    }
    const session = await asked.json();
    if (session.platformId !== platformId) {
      return refusal(403, "FORBIDDEN", "This session acts for another platform.");
    }
    return answer(200, {
      platformId,
      userId: session.user?.id ?? null,
      role: session.effectiveRole ?? session.role ?? null,
      permissions: session.permissions ?? [],
    });
  },
};
