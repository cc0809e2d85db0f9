// The chain of the document that the profile `chain` follows: a front, middleware and an external server.
//
//     node examples/chain.mjs node examples/diagnostic.mjs
import { External, Front } from 'mcpbolt';

/** The server at the end, started as a child process. */
class ExternalMCPServer extends External {}

/** Sees each message as an object on its way. */
class MiddlewareMCPServer {
    async request(message, next) {
        console.error(`→ ${message.method}`);
        const response = await next(message);
        console.error(response.error ? '← error' : '← result');
        return response;
    }
}

/** The server towards the client. */
class FrontMCPServer extends Front {}

await new FrontMCPServer(new ExternalMCPServer(process.argv.slice(2)), { middleware: [new MiddlewareMCPServer()] }).run();
