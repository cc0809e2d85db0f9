import face from './dist/sdk/index.js';

export const { accelerate, Accelerated, createMcpHandler } = face;
export const { StdioServerTransport, StdioClientTransport } = face;
export const { StreamableHTTPServerTransport, NodeStreamableHTTPServerTransport, WebStandardStreamableHTTPServerTransport } = face;
export const { StreamableHTTPClientTransport, StreamableHTTPError } = face;
