import { ApiError, del, get, onRefused, post, sessionPath, signedIn, textOf } from "./client";

type Role = "none" | "read" | "operate" | "admin";

/** Session is who the page's user is to the controller. */
class Session {
  /** known says whether the controller has told; until then nothing is shown. */
  known = $state(false);
  name = $state("");
  role = $state<Role>("none");
  /** cookie says whether the user has signed in with a token, and so can sign out. */
  cookie = $state(false);
  /** ended says that the token has ended under an open page, which stays as it is until the next sign-in. */
  ended = $state(false);
  /** anew counts sign-ins, and returns of a controller that was lost: what failed before is read again. */
  anew = $state(0);
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
      const s = await get<{ name: string; role: Role; cookie?: boolean }>(sessionPath);
      signedIn();
      if (this.ended) this.anew++;
      [this.name, this.role, this.cookie, this.known, this.ended, this.error] = [s.name, s.role, s.cookie ?? false, true, false, ""];
    } catch (err) {
      if (err instanceof ApiError && err.status === 401) {
        if (this.role === "none") this.known = true;
        else this.ended = true;
        this.error = "";
        return;
      }
      this.error = textOf(err);
      setTimeout(() => void this.look(), 2000);
    }
  }

  /** signIn makes a cookie of a token, which the page never keeps; it says whether the token counts. */
  async signIn(token: string): Promise<boolean> {
    try {
      await post(sessionPath, { token });
    } catch (err) {
      this.error = textOf(err);
      return false;
    }
    await this.look();
    return true;
  }

  async signOut() {
    try {
      await del(sessionPath);
    } catch (err) {
      this.error = `you are not signed out: ${textOf(err)}`;
      return;
    }
    [this.name, this.role, this.ended] = ["", "none", false];
    await this.look();
  }

  /** refused takes note of a call that the controller has refused. */
  refused(status: 401 | 403) {
    if (status === 403) void this.look(); // the role may be another by now
    else if (this.role !== "none") this.ended = true;
  }
}

export const session = new Session();
onRefused((status) => session.refused(status));

/** needs says why the user may not do what needs a role; "" if the user may. */
export function needs(role: "operate" | "admin"): string {
  const may = role === "operate" ? session.mayOperate : session.mayAdminister;
  return may ? "" : `this needs the role ${role}; you have ${session.role}`;
}
