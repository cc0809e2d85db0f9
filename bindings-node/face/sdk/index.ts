/**
 * Runs servers and transports of the official SDKs on the engine.
 *
 * @packageDocumentation
 */
export { accelerate, Accelerated } from './accelerate';
export { StreamableHTTPClientTransport, StreamableHTTPError } from './client';
export type { StreamableHTTPClientTransportOptions } from './client';
export { createMcpHandler } from './entry';
export type { CreateMcpHandlerOptions, McpHttpHandler, McpRequestContext, McpServerFactory, ServerNotifier } from './entry';
export { NodeStreamableHTTPServerTransport, StreamableHTTPServerTransport, WebStandardStreamableHTTPServerTransport } from './http';
export type { StreamableHTTPServerTransportOptions } from './http';
export { StdioClientTransport, StdioServerTransport } from './stdio';
export type { StdioServerParameters } from './stdio';
export type { AccelerationReport } from './report';
export type { SdkServer } from './shapes';
