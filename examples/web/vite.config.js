import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  // The client comes from this repository by a link; it must use the app's graphql, not the repository's.
  resolve: { dedupe: ['graphql'] },
});
