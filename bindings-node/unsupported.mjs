// What edge runtimes and browsers get for `mcpbolt/register`.
throw new Error('mcpbolt/register needs Node 20.6 or later: this runtime has no native modules and no loader hooks. Run the program with node, or without mcpbolt/register');
