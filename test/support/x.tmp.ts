import { openStore } from '../../src/datasources/stores/openStore.js';
process.on('unhandledRejection', (e)=>console.log('UNHANDLED', e));
const s = await openStore(process.argv[2]!, { onDegraded: (r)=>console.log('degraded', r), onRecovered: (d)=>console.log('recovered',d) });
if (process.argv[3]) { let n=0; for(;n<400 && !s.degraded;n++) await s.set('k'+n, Buffer.alloc(8000), 60000); console.log('stopped at', n, s.degraded, (await s.get('k1'))?.length, (await s.get('k'+(n-1)))?.length); }
console.log(s.kind, s.degraded, await s.setIfAbsent('a', Buffer.from('x'), 1000));
await new Promise(r=>setTimeout(r,2500)); console.log('later', s.degraded, await s.setIfAbsent('b', Buffer.from('x'), 1000)); await s.close();
