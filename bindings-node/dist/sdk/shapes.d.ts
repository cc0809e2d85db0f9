/**
 * What of the official SDKs is used here. Both generations are known by their shape; neither is imported, so that the
 * one that a program has is the one that is meant.
 */
/**
 * An `McpServer` or a `Server` of `@modelcontextprotocol/sdk` (v1) or `@modelcontextprotocol/server` (v2), or a `FastMCP`
 * of `fastmcp`.
 */
export interface SdkServer {
    connect(transport: any): Promise<unknown>;
}
