// The committed report lists the public types of this build.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { path, report } from '../scripts/api.mjs';

test('the public types are those of api.d.ts', () => {
    const renew = 'the public types have changed; if that is intended, run `npm run api` in bindings-node and commit api.d.ts';
    assert.equal(report(), readFileSync(path, 'utf8'), renew);
});
