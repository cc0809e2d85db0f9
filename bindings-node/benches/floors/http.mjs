// The floor on HTTP: bare `node:http`, one JSON answer for each POST. `node http.mjs PORT`, or $PORT.
import { createServer } from 'node:http';
import { answer } from './answer.mjs';

createServer((request, response) => {
    const pieces = [];
    request.on('data', piece => pieces.push(piece)).on('end', () => {
        const said = request.method === 'POST' ? answer(JSON.parse(Buffer.concat(pieces))) : undefined;
        if (said === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end();
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(said), 'mcp-session-id': 'floor' }).end(said);
    });
}).listen(Number(process.argv[2] ?? process.env.PORT ?? 0), '127.0.0.1', function () {
    console.error(`http://127.0.0.1:${this.address().port}/mcp`);
});
