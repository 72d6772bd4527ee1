// Uses every binding as scripts do. Each path calls one function; the response is its result as JSON.
const calls = {
  async vars(env) {
    return [env.GREETING, env.LIMITS, env.TOKEN];
  },
  async kv({ CACHE }) {
    await CACHE.put("a/b ü", "value", { metadata: { by: "test" }, expirationTtl: 60 });
    await CACHE.put("b", "2");
    const { value, metadata } = await CACHE.getWithMetadata("a/b ü");
    const first = await CACHE.list({ limit: 1 });
    const rest = await CACHE.list({ cursor: first.cursor });
    const many = await CACHE.get(["b", "none"]);
    await CACHE.delete("b");
    return {
      value, metadata, first: first.keys, complete: [first.list_complete, rest.list_complete],
      rest: rest.keys.map((key) => key.name), many: [...many], gone: await CACHE.get("b"),
    };
  },
  async kv_refused({ CACHE }) {
    await CACHE.put("short", "x", { expirationTtl: 60, metadata: "m".repeat(2000) });
  },
  async d1({ DB }) {
    await DB.exec("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT, data BLOB)");
    const insert = DB.prepare("INSERT INTO t (name, data) VALUES (?1, ?2)");
    const { meta } = await insert.bind("ada", new Uint8Array([1, 255]).buffer).run();
    await DB.batch([insert.bind("eve", null), insert.bind("zoe", null)]);
    const all = await DB.prepare("SELECT id, name, data FROM t ORDER BY id").all();
    const raw = await DB.prepare("SELECT name FROM t WHERE id > ?").bind(1).raw();
    return { changes: meta.changes, last: meta.last_row_id, all: all.results, raw, first: await DB.prepare("SELECT 1.5 AS x").first("x") };
  },
  async d1_undone({ DB }) {
    await DB.exec("CREATE TABLE IF NOT EXISTS u (id INTEGER PRIMARY KEY)");
    const insert = DB.prepare("INSERT INTO u (id) VALUES (?)");
    const failed = await DB.batch([insert.bind(1), insert.bind(1)]).then(() => null, String);
    return { failed, left: await DB.prepare("SELECT count(*) AS n FROM u").first("n") };
  },
  async d1_attach({ DB }) {
    const attempts = [
      "ATTACH '/tmp/core-other.sqlite' AS other", "VACUUM INTO '/tmp/core-copy.sqlite'", "PRAGMA Temp_Store_Directory = '/tmp'",
    ];
    return Promise.all(attempts.map((sql) => DB.prepare(sql).run().then(() => "done", () => "refused")));
  },
  async d1_dump({ DB }) {
    await DB.dump();
  },
  async r2({ ASSETS }) {
    const put = await ASSETS.put("docs/a.txt", "0123456789", {
      httpMetadata: { contentType: "text/plain", cacheControl: "no-store" }, customMetadata: { by: "test" },
    });
    await ASSETS.put("docs/b.txt", "b");
    await ASSETS.put("c.txt", "c");
    const got = await ASSETS.get("docs/a.txt");
    const piece = await ASSETS.get("docs/a.txt", { range: { offset: 2, length: 3 } });
    const same = await ASSETS.get("docs/a.txt", { onlyIf: { etagDoesNotMatch: put.etag } });
    const kept = await ASSETS.put("c.txt", "new", { onlyIf: { etagMatches: "other" } });
    const listed = await ASSETS.list({ delimiter: "/" });
    const page = await ASSETS.list({ limit: 2 });
    const next = await ASSETS.list({ cursor: page.cursor });
    await ASSETS.delete(["docs/a.txt", "docs/b.txt"]);
    return {
      text: await got.text(), type: got.httpMetadata, custom: got.customMetadata, piece: await piece.text(),
      same: "body" in same, kept, listed: [listed.objects.map((o) => o.key), listed.delimitedPrefixes],
      pages: [page.objects.length, page.truncated, next.objects.map((o) => o.key)],
      gone: await ASSETS.head("docs/a.txt"), left: await (await ASSETS.get("c.txt")).text(),
    };
  },
  async r2_multipart({ ASSETS }) {
    await ASSETS.createMultipartUpload("large");
  },
  async queue({ EVENTS }) {
    await EVENTS.send({ n: 1 });
    await EVENTS.sendBatch([{ body: "two", contentType: "text" }, { body: { n: 3 } }]);
  },
  async service({ OTHER, SITE }) {
    const asked = { method: "POST", body: "ping", headers: { "x-core-binding": "CACHE" } };
    const other = await OTHER.fetch("http://other/path?q=1", asked);
    const site = await SITE.fetch("http://site/");
    return [await other.text(), site.status, await site.text()];
  },
  async outside() {
    return (await fetch("http://127.0.0.1:22/")).status;
  },
};

export default {
  async fetch(request, env) {
    const call = calls[new URL(request.url).pathname.slice(1)];
    try {
      return Response.json((await call(env)) ?? null);
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
