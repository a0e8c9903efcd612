import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["failing/*.vitest.js"], pool: process.env.POOL ?? "forks" } });
