// A server program on pipes, as the benches use it: messages go out as bytes, answers come back as lines.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const OPEN = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };

export class Pipe {
    #pieces = [];
    #waiting = [];

    constructor([command, ...args], cwd) {
        this.child = spawn(command, args, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
        this.child.stdout.on('data', bytes => this.#take(bytes));
    }

    #take(bytes) {
        for (let at = 0; ; ) {
            const end = bytes.indexOf(10, at);
            this.#pieces.push(end < 0 ? bytes.subarray(at) : bytes.subarray(at, end));
            if (end < 0) return;
            this.#waiting.shift()(Buffer.concat(this.#pieces));
            this.#pieces = [];
            at = end + 1;
        }
    }

    /** Sends a request; gives its answer's line. */
    ask(bytes) {
        const line = new Promise(resolve => this.#waiting.push(resolve));
        this.child.stdin.write(bytes);
        this.child.stdin.write('\n');
        return line;
    }

    request(id, method, params) {
        return this.ask(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    }

    async open() {
        await this.request(0, 'initialize', OPEN);
        this.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
        return this;
    }

    /** Milliseconds of CPU that all its threads have used. */
    cpu() {
        const folder = `/proc/${this.child.pid}/task`;
        const used = thread => Number(readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
        return readdirSync(folder).reduce((sum, thread) => sum + used(thread), 0);
    }

    end() {
        this.child.stdin.end();
        return new Promise(resolve => this.child.on('close', resolve));
    }
}
