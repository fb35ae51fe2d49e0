// Every call of zenoh-ts against a zenlake router, beside an Eclipse client that echoes.
import { strict as assert } from "node:assert";
import {
  CancellationToken, Config, CongestionControl, Encoding, FifoChannel, Locality, Priority,
  QueryTarget, Reliability, ReplyError, ReplyKeyExpr, SampleKind, Session, ZBytes,
} from "@eclipse-zenoh/zenoh-ts";

const url = process.argv[2];
const one = async (receiver) => { for await (const item of receiver) return item; };
const all = async (receiver) => { const found = []; for await (const item of receiver) found.push(item); return found; };
const until = async (what, holds) => {
  for (let i = 0; i < 400; i++) { if (await holds()) return; await new Promise((r) => setTimeout(r, 25)); }
  throw new Error("not in time: " + what);
};
const text = (bytes) => bytes.toString();

const session = await Session.open(new Config(url));
assert.equal(session.isClosed(), false);
const info = await session.info();
assert.match(info.zid().toString(), /^[0-9a-f]+$/);
assert.ok(Array.isArray(info.routersZid()) && Array.isArray(info.peersZid()));
const transports = await info.transports();
assert.ok(transports.length >= 1);
assert.match(transports[0].zid().toString(), /^[0-9a-f]+$/);
assert.equal(transports[0].isMulticast(), false);
const links = await info.links();
assert.ok(links.length >= 1 && links[0].src().startsWith("tcp/") && links[0].dst().startsWith("tcp/"));
assert.equal(links[0].isStreamed(), true);
assert.ok(links[0].mtu() > 1000);
const events = await info.transportEventsListener({ history: true });
assert.equal((await one(events.receiver())).kind(), SampleKind.PUT);
await events.undeclare();
const linkEvents = await info.linkEventsListener({ history: true });
assert.equal((await one(linkEvents.receiver())).kind(), SampleKind.PUT);
await linkEvents.undeclare();
const stamp = await session.newTimestamp();
assert.ok(stamp.asDate().getFullYear() >= 2024);
assert.equal(session.declareKeyexpr("ts/key").toString(), "ts/key");

// Subscriber, put, delete, all options.
const samples = [];
const sub = await session.declareSubscriber("ts/**", { handler: (sample) => { samples.push(sample); }, allowedOrigin: Locality.ANY });
await session.put("ts/put", "hello", {
  encoding: Encoding.TEXT_PLAIN, attachment: "note", timestamp: stamp, priority: Priority.DATA_HIGH,
  congestionControl: CongestionControl.BLOCK, express: true, reliability: Reliability.RELIABLE,
  allowedDestination: Locality.ANY,
});
await session.delete("ts/put", { attachment: "gone" });
await until("two samples", () => samples.length >= 2);
assert.equal(text(samples[0].payload()), "hello");
assert.equal(text(samples[0].attachment()), "note");
assert.equal(samples[0].encoding().toString(), "text/plain");
assert.equal(samples[0].priority(), Priority.DATA_HIGH);
assert.equal(samples[0].congestionControl(), CongestionControl.BLOCK);
assert.equal(samples[0].express(), true);
assert.equal(samples[0].kind(), SampleKind.PUT);
assert.equal(samples[0].timestamp().asDate().getTime(), stamp.asDate().getTime());
assert.equal(samples[1].kind(), SampleKind.DELETE);
await sub.undeclare();

// Publisher with matching, against the Eclipse subscriber that echoes to `echo/**`.
const echoes = await session.declareSubscriber("echo/**", { handler: new FifoChannel(64) });
const publisher = await session.declarePublisher("say/a", { encoding: Encoding.APPLICATION_JSON, congestionControl: CongestionControl.BLOCK });
const matching = await publisher.matchingListener();
assert.equal((await one(matching.receiver())).matching(), true);
assert.equal((await publisher.matchingStatus()).matching(), true);
await publisher.put('{"a":1}', { attachment: "x" });
const echoed = await one(echoes.receiver());
assert.equal(text(echoed.payload()), '{"a":1}');
assert.equal(echoed.encoding().toString(), "application/json");
await publisher.put("plain", { encoding: Encoding.TEXT_PLAIN, timestamp: await session.newTimestamp() });
assert.equal(text((await one(echoes.receiver())).payload()), "plain");
await publisher.delete({ attachment: "y" });
assert.equal((await one(echoes.receiver())).kind(), SampleKind.DELETE);
assert.equal(publisher.keyExpr().toString(), "say/a");
await matching.undeclare();
await publisher.undeclare();
await echoes.undeclare();

// A queryable here, asked by the Eclipse client (it asks `ts/ask` when it hears `please/ask`).
const queries = [];
const queryable = await session.declareQueryable("ts/ask", {
  complete: true,
  handler: async (query) => {
    queries.push([query.selector().toString(), query.payload() && text(query.payload()), query.encoding() && query.encoding().toString(), query.attachment() && text(query.attachment())]);
    await query.reply("ts/ask", "answer", { encoding: Encoding.TEXT_PLAIN, attachment: "a", express: true });
    await query.replyErr("wrong");
    await query.finalize();
  },
});
const asked = await session.declareSubscriber("asked", { handler: new FifoChannel(8) });
await until("an answer for the Eclipse client", async () => {
  await session.put("please/ask", "x");
  return queries.length > 0;
});
assert.equal(text((await one(asked.receiver())).payload()), "answer|wrong");
assert.deepEqual(queries[0], ["ts/ask?a=1", "body", "text/plain", "att"]);
await queryable.undeclare();
const deleting = await session.declareQueryable("ts/del", { handler: async (query) => { await query.replyDel("ts/del"); await query.finalize(); } });
const dels = await all(await session.get("ts/del"));
assert.equal(dels[0].result().kind(), SampleKind.DELETE);
await deleting.undeclare();

// Gets: of the Eclipse queryable, an error, a storage.
const replies = await all(await session.get("far/ask?x=1", { payload: "body", encoding: Encoding.TEXT_PLAIN, attachment: "att", target: QueryTarget.ALL, acceptReplies: ReplyKeyExpr.MATCHING_QUERY, timeout: 5000 }));
assert.deepEqual(replies.map((reply) => text(reply.result().payload())).sort(), ["bad", "far/ask?x=1|body"]);
assert.ok(replies.some((reply) => reply.result() instanceof ReplyError));
const token = new CancellationToken();
const cancelled = await session.get("slow/ask", { cancellationToken: token, timeout: 3000 });
token.cancel();
assert.deepEqual(await all(cancelled), []);
await session.put("demo/a", new ZBytes(new Uint8Array([1, 2, 3])));
await until("a stored value", async () => (await all(await session.get("demo/**"))).length === 1);

// Querier.
const querier = await session.declareQuerier("far/ask", { target: QueryTarget.ALL, timeout: 5000 });
assert.equal(querier.keyExpr().toString(), "far/ask");
const ready = await querier.matchingListener();
assert.equal((await one(ready.receiver())).matching(), true);
assert.equal((await querier.matchingStatus()).matching(), true);
const again = await all(await querier.get({ parameters: "y=2", payload: "p" }));
assert.ok(again.some((reply) => text(reply.result().payload()) === "far/ask?y=2|p"));
await ready.undeclare();
await querier.undeclare();

// Liveliness, both ways.
const live = await session.liveliness().declareSubscriber("live/**", { history: true, handler: new FifoChannel(8) });
assert.equal((await one(live.receiver())).keyexpr().toString(), "live/eclipse");
const mine = await session.liveliness().declareToken("live/ts");
assert.equal((await one(live.receiver())).keyexpr().toString(), "live/ts");
assert.deepEqual((await all(await session.liveliness().get("live/**", { timeout: 5000 }))).map((r) => r.result().keyexpr().toString()).sort(), ["live/eclipse", "live/ts"]);
await mine.undeclare();
assert.equal((await one(live.receiver())).kind(), SampleKind.DELETE);
await live.undeclare();

// Errors are answered, and the session lives on.
await assert.rejects(session.declareSubscriber("a//b"));
await session.put("finished", "yes");
await session.close();
await until("closed", () => session.isClosed());
console.log("every call answered");
process.exit(0);
