import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { rolesScript } from "../../packages/pawl/src/service.js";
import { debianPostgres } from "../../scripts/servers.mjs";
import { onceOrAgain } from "../support/again.js";
import { runPawl } from "../support/run-cli.js";
import { debianMissing } from "../support/servers/debian-postgres.js";
import { type Database, describeOn, freshDatabase, type ServerName, urlOf } from "../support/servers/servers.js";

interface ScriptResult {
  /** what psql ended with: 0 if it took the script for done */
  readonly status: number | null;
  readonly err: string;
}

/** A database whose schema belongs to a login without rights over the server, as docs/operations.md makes one. */
class RolesRecipe implements AsyncDisposable {
  readonly schema = `recipe_${randomBytes(4).toString("hex")}`;
  readonly owner = `${this.schema}_owner`;
  private constructor(
    readonly database: Database,
    readonly admin: pg.Client,
  ) {
    admin.on("error", () => {});
  }

  static async start(on: ServerName, rights = ""): Promise<RolesRecipe> {
    const database = await freshDatabase(on);
    const admin = new pg.Client(database.directConfig);
    await admin.connect();
    const recipe = new RolesRecipe(database, admin);
    await admin.query(`create role ${recipe.owner} login ${rights}`);
    await admin.query(`grant create on database ${database.name} to ${recipe.owner}`);
    return recipe;
  }

  url(user: string): string {
    return urlOf({ ...this.database.directConfig, user }, this.database.name);
  }

  /** The schema, as its owner makes it. */
  async migrate(): Promise<void> {
    await (await open(this.url(this.owner), { postgres: { schema: this.schema }, maintenance: false })).close();
  }

  /** What `pawl migrate --print-roles` prints, given to psql. */
  async psql(user: string): Promise<ScriptResult> {
    const { out, exit } = await runPawl("migrate", "--print-roles", "--schema", this.schema);
    expect(exit).toBe(0);
    const { status, stderr } = spawnSync(join(debianPostgres, "psql"), ["-X", "-q", this.url(user)], { input: out, encoding: "utf8" });
    return { status, err: stderr };
  }

  async rows(text: string): Promise<number | null> {
    return (await this.admin.query(text)).rowCount;
  }

  /** Whether what the owner reads for a tenant is read as the tenant's role: not if it finds none, or a part. */
  async walled(user: string): Promise<boolean> {
    const tenant = `${this.schema}_tenant`;
    const client = new pg.Client(this.url(user));
    await client.connect();
    try {
      await client.query("begin");
      await client.query(`set local role ${tenant}`);
      return (await client.query(`select from pg_policy where polname = 'own' and '${tenant}'::regrole = any(polroles)`)).rowCount !== 0;
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin.end();
    await this.database.drop();
    const admin = new pg.Client({ ...this.database.directConfig, database: "postgres" });
    await admin.connect();
    // The owner last: as far as it made the others, they are granted by it.
    const ours = "select rolname from pg_roles where starts_with(rolname, $1) order by rolname = $2";
    const { rows } = await admin.query<{ rolname: string }>(ours, [this.schema, this.owner]);
    for (const { rolname } of rows) await admin.query(`drop role ${rolname}`);
    await admin.end();
  }
}

/** Lines that psql printed as errors: one, if it stopped at the first. */
function errors({ err }: ScriptResult): readonly string[] {
  return err.split("\n").filter((line) => line.includes("ERROR:"));
}

const missing = debianMissing();

for (const server of onceOrAgain(["embedded18", "debian15"] as const)) {
  describeOn(server, () => {
    describe.skipIf(missing !== undefined)(`the script of roles in psql${missing === undefined ? "" : ` (${missing})`}`, () => {
      test("stops at its first statement, changes nothing and says what is needed if its owner may not create roles", async () => {
        await using recipe = await RolesRecipe.start(server);
        await recipe.migrate();
        const ran = await recipe.psql(recipe.owner);
        expect(ran.status).toBe(3);
        expect(errors(ran)).toEqual([expect.stringContaining(`the role ${recipe.owner} may not create roles`)]);
        expect(ran.err).toContain(`${recipe.schema}_engine, ${recipe.schema}_readonly, ${recipe.schema}_tenant`);
        expect(ran.err).toMatch(/HINT: .*superuser.*createrole/);
        expect(await recipe.rows(`select from pg_roles where rolname in ('${recipe.schema}_engine', '${recipe.schema}_tenant')`)).toBe(0);
        expect(await recipe.rows(`select from pg_class where relrowsecurity and relnamespace = '${recipe.schema}'::regnamespace`)).toBe(0);
      });

      test("is carried out by an owner that may create roles, whose reads for a tenant then act as the tenant's role", async () => {
        await using recipe = await RolesRecipe.start(server, "createrole");
        await recipe.migrate();
        expect(await recipe.psql(recipe.owner)).toEqual({ status: 0, err: "" });
        expect(await recipe.walled(recipe.owner)).toBe(true);
        expect(await recipe.psql(recipe.owner)).toEqual({ status: 0, err: "" });
      });

      test("is carried out by a superuser for an owner without rights: also what the owner makes later is the engine's", async () => {
        await using recipe = await RolesRecipe.start(server);
        await recipe.migrate();
        expect(await recipe.psql(recipe.database.directConfig.user)).toEqual({ status: 0, err: "" });
        expect(await recipe.walled(recipe.owner)).toBe(true);
        const owner = new pg.Client(recipe.url(recipe.owner));
        await owner.connect();
        await owner.query(`create table ${recipe.schema}.later (id int)`).finally(() => owner.end());
        const engine = `${recipe.schema}_engine`;
        expect(await recipe.rows(`select where has_table_privilege('${engine}', '${recipe.schema}.later', 'insert')`)).toBe(1);
        // From then on there is nothing left that needs rights: the owner runs it after each migration.
        expect(await recipe.psql(recipe.owner)).toEqual({ status: 0, err: "" });
      });

      test("names the memberships that are missing if the roles are there and the owner may not grant them", async () => {
        await using recipe = await RolesRecipe.start(server);
        await recipe.migrate();
        const tenant = `${recipe.schema}_tenant`;
        for (const name of ["engine", "readonly", "tenant"]) await recipe.admin.query(`create role ${recipe.schema}_${name}`);
        const ran = await recipe.psql(recipe.owner);
        expect(ran.status).toBe(3);
        expect(errors(ran)).toEqual([expect.stringContaining(`may not grant ${tenant} to ${recipe.schema}_engine, ${recipe.owner}`)]);
        await recipe.admin.query(`grant ${tenant} to ${recipe.schema}_engine, ${recipe.owner}`);
        expect(await recipe.psql(recipe.owner)).toEqual({ status: 0, err: "" });
        expect(await recipe.walled(recipe.owner)).toBe(true);
      });

      test("refuses whoever does not own the tables", async () => {
        await using recipe = await RolesRecipe.start(server);
        await recipe.migrate();
        const other = `${recipe.schema}_other`;
        await recipe.admin.query(`create role ${other} login createrole`);
        const ran = await recipe.psql(other);
        expect(ran.status).toBe(3);
        expect(errors(ran)).toEqual([expect.stringContaining(`${recipe.owner} owns the schema ${recipe.schema}, and ${other} does not act for it`)]);
      });

      test("says that there is no such schema where it was not migrated, or in another database", async () => {
        await using recipe = await RolesRecipe.start(server, "createrole");
        const ran = await recipe.psql(recipe.owner);
        expect(ran.status).toBe(3);
        expect(errors(ran)).toEqual([expect.stringContaining(`there is no schema ${recipe.schema} in the database ${recipe.database.name}`)]);
        expect(ran.err).toMatch(/HINT: .*pawl migrate/);
      });

      test("says that the schema is behind before it changes anything", async () => {
        await using recipe = await RolesRecipe.start(server, "createrole");
        await recipe.migrate();
        await recipe.admin.query(`alter table ${recipe.schema}.suspect rename to suspect_before`);
        const ran = await recipe.psql(recipe.owner);
        expect(ran.status).toBe(3);
        expect(errors(ran)).toEqual([expect.stringContaining(`the schema ${recipe.schema} has no table suspect`)]);
        expect(await recipe.rows(`select from pg_roles where rolname = '${recipe.schema}_engine'`)).toBe(0);
      });
    });
  });
}

test("a name of a schema that could not be one is refused, and none whose roles would have their names cut", () => {
  for (const schema of ["Jobs", "pawl; drop schema public", "x".repeat(55)])
    expect(() => rolesScript(schema), schema).toThrowError(expect.objectContaining({ code: "option_invalid" }));
});
