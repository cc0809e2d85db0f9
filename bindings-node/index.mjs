import face from './dist/index.js';

export const { audio, Block, Client, image, Json, json, link, McpError, prompt, ProtocolError, resource, Server, text, ToolError } = face;
