"""An S3 server for tests: moto, with one access key whose signatures are verified.

It prints its port when it accepts connections, and then executes the commands of its standard input, one a line. It
answers each with a line, and ends when its standard input is closed.
"""

import io
import json
import os
import sys
import threading

from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from moto.sts.models import sts_backends
from werkzeug.serving import WSGIRequestHandler, make_server

ALLOW_ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
REFUSED = b"<Error><Code>EntityTooSmall</Code><Message>Refused by the test.</Message></Error>"


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


class Application:
    """Lets requests fail, or cuts their response off, before they reach moto."""

    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.failures = 0
        self.cuts = 0
        self.refuses_parts = False

    def take(self, name):
        with self.lock:
            left = getattr(self, name)
            setattr(self, name, max(left - 1, 0))
            return left > 0

    def __call__(self, environ, start_response):
        # Like real servers, moto reads the whole body before it responds.
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        if self.take("failures"):
            return respond(start_response, "503 Slow Down", SLOW_DOWN)
        method, query = environ["REQUEST_METHOD"], environ["QUERY_STRING"]
        if method == "PUT" and "partNumber" in query and self.refuses_parts:
            return respond(start_response, "400 Bad Request", REFUSED)
        if method == "GET" and not query and self.take("cuts"):
            return self.cut(environ, start_response)
        return self.moto(environ, start_response)

    def cut(self, environ, start_response):
        """Sends the first half of a body, and closes the connection."""
        body = b"".join(self.moto(environ, start_response))
        yield body[: len(body) // 2]
        raise ConnectionAbortedError


def respond(start_response, status, body):
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def execute(command, application):
    match command:
        case ["bucket", name]:
            s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(name, "us-east-1")
            return "ok"
        case ["fail", count]:
            application.failures = int(count)
            return "ok"
        case ["cut", count]:
            application.cuts = int(count)
            return "ok"
        case ["cuts-left"]:
            return str(application.cuts)
        case ["fill", name, prefix, count]:
            for number in range(int(count)):
                s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(name, f"{prefix}-{number}", b"x")
            return "ok"
        case ["role"]:
            return json.dumps(role_credentials())
        case ["refuse-parts", refuses]:
            application.refuses_parts = refuses == "true"
            return "ok"
        case ["keys", name]:
            bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_bucket(name)
            return " ".join(sorted(bucket.keys.keys()))
        case ["multiparts", name]:
            return str(len(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_bucket(name).multiparts))
    raise ValueError(command)


def role_credentials():
    """Returns the credentials of a role in the form in which services of a machine return them."""
    iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    iam.create_role("core", json.dumps(ALLOW_ALL), "/", None, "", [], 3600)
    iam.put_role_policy("core", "all", json.dumps(ALLOW_ALL))
    role = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assume_role(
        region_name="us-east-1",
        role_session_name="tests",
        role_arn=f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/core",
        policy=None,
        duration=3600,
        external_id=None,
    )
    return {
        "AccessKeyId": role.access_key_id,
        "SecretAccessKey": role.secret_access_key,
        "Token": role.session_token,
        "Expiration": role.expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def main():
    port, key_id, secret, *certificate_and_key = sys.argv[1:]
    user = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    user.create_user("aws", "core")
    user.put_user_policy("core", "all", json.dumps(ALLOW_ALL))
    key = user.create_access_key("core")
    key.access_key_id, key.secret_access_key = key_id, secret
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    application = Application()
    tls = tuple(certificate_and_key) or None
    server = make_server("127.0.0.1", int(port), application, True, request_handler=Handler, ssl_context=tls)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    for line in sys.stdin:
        print(execute(line.split(), application), flush=True)
    os._exit(0)


main()
