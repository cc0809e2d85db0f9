// The floor on stdio: what JavaScript by itself costs, written by hand, without a library.
import { answer } from './answer.mjs';

let rest = '';
process.stdin.setEncoding('utf8').on('data', text => {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop();
    let out = '';
    for (const line of lines) {
        const said = answer(JSON.parse(line));
        if (said !== undefined) out += `${said}\n`;
    }
    if (out !== '') process.stdout.write(out);
});
