// The rows that cross in one turn, as `src/drain.rs` writes them, without an engine.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const { Link } = createRequire(import.meta.url)('../dist/link.js');
const [CALL, INVOKE, ERROR] = [0, 21, 5];

test('arguments that cannot be read fail their own call and no other', t => {
    const told = [];
    const link = new Link({
        invoke: (...call) => told.push(call),
        call: (number, target, text) => told.push([number, target, text])
    });
    t.after(() => link.abandon());
    const rows = [
        [INVOKE, 1, 7, 1, 1, 8],
        [CALL, 2, 5, 8, 0, 0],
        [INVOKE, 3, 7, 9, 9, 12],
        [INVOKE, 4, 7, 13, 11, 17]
    ];
    const said = [];
    link.attach({
        drain: table => {
            table.set([rows.length, 0, 13, ...rows.flat()]);
            return '1{"b":1}312{}[{"a":1},{a},null]';
        },
        submit: (text, table) => said.push([text, ...table])
    });
    link.wake();
    assert.deepEqual(told, [
        [1, 7, { a: 1 }, '1', '', false],
        [2, 5, '{"b":1}'],
        [4, 7, null, '12', '{}', false]
    ]);
    const text = '{"message":"the arguments cannot be read"}';
    assert.deepEqual(said, [[text, ERROR, 3, text.length, -32602, 0]]);
});
