// `node --import mcpbolt/register server.js`: has the engine serve wherever the program would with an official SDK.
import './dist/register/index.js';
