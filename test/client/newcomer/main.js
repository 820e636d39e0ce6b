// node main.js <module> <arguments of its run>
const [, , module, ...args] = process.argv;
const { run } = await import(module);
console.log(JSON.stringify(await run(...args)));
