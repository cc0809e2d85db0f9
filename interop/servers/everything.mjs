// `@modelcontextprotocol/server-everything`, as it comes, on stdin and stdout or at an address.
const [address] = process.argv.slice(2);
if (address) process.env.PORT = new URL(address).port;
await import(`@modelcontextprotocol/server-everything/dist/transports/${address ? 'streamableHttp' : 'stdio'}.js`);
