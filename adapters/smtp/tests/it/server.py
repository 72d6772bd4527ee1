"""An SMTP server on loopback that follows a script, and reports its events as lines of JSON."""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

CONFIG = json.loads(sys.argv[1])


def tell(**event):
    print(json.dumps(event), flush=True)


class Server(SMTP):
    def connection_made(self, transport):
        if self._tls_handshake_okay and self.session is not None:
            tell(event="starttls")
        else:
            tell(event="connection")
        super().connection_made(transport)


def scripted(phase):
    replies = CONFIG.get(phase, [])
    reply = replies.pop(0) if replies else None
    if reply:
        tell(event="refused", reply=reply)
    return reply


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        reply = scripted("rcpt")
        if reply:
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        reply = scripted("data")
        if reply:
            return reply
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        problems = [str(d) for part in message.walk() for d in part.defects]
        problems += [str(d) for value in message.values() for d in getattr(value, "defects", [])]
        tell(
            event="mail",
            sender=envelope.mail_from,
            to=envelope.rcpt_tos,
            headers={name: str(value) for name, value in message.items()},
            text=message.get_body(("plain",)).get_content(),
            html=message.get_body(("html",)).get_content(),
            problems=problems,
            ascii=envelope.content.isascii(),
            encrypted=CONFIG["tls"] == "implicit" or session.ssl is not None,
            user=session.auth_data.login.decode() if session.authenticated else None,
        )
        if CONFIG.get("closes"):
            asyncio.get_running_loop().call_later(0.05, close, server)
        return "250 OK"


def close(server):
    server.transport.close()
    tell(event="closed")


def authenticate(server, session, envelope, mechanism, data):
    known = isinstance(data, LoginPassword) and [data.login.decode(), data.password.decode()] == CONFIG["login"]
    if not known:
        tell(event="unknown login", mechanism=mechanism)
    return AuthResult(success=known, handled=False, auth_data=data)


def server():
    options = {"enable_SMTPUTF8": False, "timeout": 60}
    if CONFIG["tls"] == "starttls":
        options |= {"tls_context": context(), "require_starttls": True}
    if CONFIG.get("login"):
        options |= {"authenticator": authenticate, "auth_required": True, "auth_require_tls": CONFIG["tls"] == "starttls"}
    return Server(Handler(), **options)


def context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CONFIG["certificate"], CONFIG["key"])
    return context


async def main():
    tls = context() if CONFIG["tls"] == "implicit" else None
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, ssl=tls)
    tell(port=listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


asyncio.run(main())
