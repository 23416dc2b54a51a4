import { ApiError, del, get, onSignedOut, post, textOf } from "./client";

type Role = "none" | "read" | "operate" | "admin";

/** Session is who the page's user is to the controller. */
class Session {
  /** known says whether the controller has told; until then nothing is shown. */
  known = $state(false);
  name = $state("");
  role = $state<Role>("none");
  error = $state("");

  get mayOperate() {
    return this.role === "operate" || this.role === "admin";
  }
  get mayAdminister() {
    return this.role === "admin";
  }

  /** look asks the controller who the user is. */
  async look() {
    try {
      const s = await get<{ name: string; role: Role }>("v1/session");
      [this.name, this.role, this.known, this.error] = [s.name, s.role, true, ""];
    } catch (err) {
      if (err instanceof ApiError && err.status === 0) {
        this.error = err.message;
        setTimeout(() => void this.look(), 2000);
        return;
      }
      [this.name, this.role, this.known] = ["", "none", true];
    }
  }

  /** signIn makes a cookie of a token; the page never keeps the token. */
  async signIn(token: string) {
    try {
      await post("v1/session", { token });
      this.error = "";
    } catch (err) {
      this.error = textOf(err);
      return;
    }
    await this.look();
  }

  async signOut() {
    await del("v1/session");
    await this.look();
  }
}

export const session = new Session();

onSignedOut(() => {
  session.role = "none";
  session.known = true;
});

/** needs says why the user may not do what needs a role; "" if the user may. */
export function needs(role: "operate" | "admin"): string {
  const may = role === "operate" ? session.mayOperate : session.mayAdminister;
  return may ? "" : `this needs the role ${role}; you have ${session.role}`;
}
