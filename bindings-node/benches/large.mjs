// Long messages over stdio, beside the Rust server: `node benches/large.mjs RUST_SERVER [--quick] [--json FILE]`, where
// the server is the program that `cargo xtask diagnostic --lang rust --print` names.
//
// A call of `resize` brings a text of so many bytes and is answered with 16. A server may use 1.3 times the
// time of the Rust server for the same bytes and one JSON.parse of them. Figures are CPU milliseconds of all threads.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { median, note, quick, words } from './figures.mjs';
import { Pipe } from './pipe.mjs';

const [rust] = words;
const rounds = quick ? 1 : 5;
assert.ok(rust, 'which Rust server?');
const folder = fileURLToPath(new URL('..', import.meta.url));
const SERVERS = { rust: rust.split(' '), node: [process.execPath, 'examples/diagnostic.mjs'] };
const SIZES = [1, 9, 11, 64];
/** ASCII text, and other text: 16 bytes again and again. */
const TEXTS = { ascii: 'abcdefghijklmnop', unicode: 'abcdefghijklmné' };

const message = (id, text) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'resize', arguments: { text, n: 16 } } }));

console.log(`node ${process.version}; CPU ms, median of ${rounds}`);
console.log(['text', 'MB', 'rust', 'node', 'JSON.parse', 'node / (1.3 rust + parse)', 'ns per byte'].map(name => name.padStart(12)).join(''));
for (const [kind, unit] of Object.entries(TEXTS)) {
    for (const size of SIZES) {
        const bytes = size << 20;
        const text = unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));
        const line = message(1, text);
        const took = { rust: [], node: [], parse: [] };
        const pipes = {};
        for (const [name, command] of Object.entries(SERVERS)) {
            pipes[name] = await new Pipe(command, folder).open();
            const answer = JSON.parse(await pipes[name].ask(line));
            assert.equal(answer.result.content[0].text, unit, name);
        }
        for (let round = 0; round < rounds; round++) {
            for (const [name, pipe] of Object.entries(pipes)) {
                const before = pipe.cpu();
                await pipe.ask(line);
                took[name].push(pipe.cpu() - before);
            }
            const json = line.toString('utf8');
            const before = process.cpuUsage();
            JSON.parse(json);
            const { user, system } = process.cpuUsage(before);
            took.parse.push((user + system) / 1000);
        }
        for (const pipe of Object.values(pipes)) await pipe.end();
        const [r, n, p] = [median(took.rust), median(took.node), median(took.parse)];
        note({ bench: 'node-large', text: kind, mb: size, rustMs: r, nodeMs: n, parseMs: p });
        const cells = [kind, size, r.toFixed(1), n.toFixed(1), p.toFixed(1), (n / (1.3 * r + p)).toFixed(2), ((n * 1e6) / line.length).toFixed(2)];
        console.log(cells.map(cell => String(cell).padStart(12)).join(''));
    }
}
