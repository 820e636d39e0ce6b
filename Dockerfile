# Builds with all dependencies, then keeps the build alone: the code that it uses of them is in its bundle.
FROM node:22.23.3-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages/client/package.json ./packages/client/
RUN npm ci --no-audit
COPY tsconfig.json ./
COPY scripts ./scripts
COPY src ./src
RUN node scripts/build.js
# The bill of materials tells scanners of the image what is in the bundle. `npm sbom --omit=dev` would leave out what development
# dependencies need as well, such as graphql and jose.
RUN npm pkg delete devDependencies && npm prune --no-audit && npm sbom --sbom-format=cyclonedx > taxpayer-gateway.cdx.json

FROM node:22.23.3-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json /app/taxpayer-gateway.cdx.json ./
COPY --from=build /app/dist ./dist
# The only place that is written to: the embedded cache is kept in the working directory. Mount a volume here to keep it,
# or set CACHE_URL to a Redis. Its group is root for OpenShift, whose users have any uid, but that group.
RUN install -d -o node -g root -m 775 /data && ln -s /app/dist/main.js /usr/local/bin/taxpayer-gateway
WORKDIR /data
VOLUME /data
# As a number, because Kubernetes cannot tell from a name that it is not root.
USER 1000
EXPOSE 4000 9464
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "const e=process.env,m=e.METRICS_PORT;require(e.TLS_CERT_FILE&&!m?'https':'http').get({host:/^(0\\.0\\.0\\.0|::)?$/.test(e.HOST||'')?'localhost':e.HOST,port:m||e.PORT||4000,path:'/health/ready',rejectUnauthorized:false},r=>process.exit(r.statusCode===200?0:1)).on('error',()=>process.exit(1))"]
# Node.js itself is process 1: it gets SIGTERM and drains.
CMD ["node", "/app/dist/main.js"]
