// A folder of its own, in which programs find the packages that the tests find.
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { folder } from './wire.mjs';

export function place(prefix) {
    const made = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
    symlinkSync(new URL('node_modules', folder).pathname, join(made, 'node_modules'));
    after(() => rmSync(made, { recursive: true, force: true }));
    return made;
}
