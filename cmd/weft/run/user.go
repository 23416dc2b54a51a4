package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/deploy/supervisor"
	"github.com/weft-sdn/weft/internal/rootpart"
)

// account is a user whom a controller that root has started becomes.
type account struct {
	name     string // empty: it has none
	UID, GID int
}

// String names the account to people.
func (a account) String() string {
	if a.name == "" {
		return fmt.Sprintf("user %d", a.UID)
	}
	return fmt.Sprintf("user %s (%d)", a.name, a.UID)
}

// userHelp is the help of --user.
const userHelp = "started as root, become this user: NAME or UID, with :GROUP; root stays root (default the owner of the data directory, else weft, else 64653)"

// firstFree is the user that is taken where there is none called weft: the first
// from here on that the machine has no name for.
const firstFree = 64653

// ChooseAccount returns whom a controller with a data directory is to run as.
func ChooseAccount(flag, dir string) (account, error) {
	if flag != "" {
		return readAccount(flag)
	}
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			a := account{UID: int(st.Uid), GID: int(st.Gid)}
			if u, err := user.LookupId(strconv.Itoa(a.UID)); err == nil {
				a.name = u.Username
			}
			if a.GID == 0 {
				a.GID = a.UID
			}
			return a, nil
		}
	}
	if u, err := user.Lookup("weft"); err == nil {
		return accountOf(u)
	}
	for id := firstFree; id < firstFree+100; id++ {
		_, userErr := user.LookupId(strconv.Itoa(id))
		_, groupErr := user.LookupGroupId(strconv.Itoa(id))
		if userErr != nil && groupErr != nil {
			return account{UID: id, GID: id}, nil
		}
	}
	return account{}, errors.New("there is no user weft to become; make one (useradd --system weft), or name one with --user")
}

// readAccount reads NAME or UID, with :GROUP if there is one.
func readAccount(text string) (a account, err error) {
	name, group, grouped := strings.Cut(text, ":")
	if u, err := user.Lookup(name); err == nil {
		if a, err = accountOf(u); err != nil {
			return a, err
		}
	} else if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		a.UID, a.GID = int(n), int(n)
		if u, err := user.LookupId(name); err == nil {
			if a, err = accountOf(u); err != nil {
				return a, err
			}
		}
	} else {
		return a, fmt.Errorf("--user %q: there is no such user; want the name of one, or a number", text)
	}
	if grouped {
		id := group
		if g, err := user.LookupGroup(group); err == nil {
			id = g.Gid
		}
		n, err := strconv.ParseUint(id, 10, 31)
		if err != nil {
			return a, fmt.Errorf("--user %q: there is no group %q; want the name of one, or a number", text, group)
		}
		a.GID = int(n)
	}
	if a.UID != 0 && a.GID == 0 {
		return a, fmt.Errorf("--user %q: its group is root's; name another, as in --user %s:GROUP", text, name)
	}
	return a, nil
}

func accountOf(u *user.User) (account, error) {
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return account{u.Username, uid, gid}, errors.Join(err, err2)
}

// leaveRoot has a process that root has started run on as another user, by
// executing the program again, and returns only where there is nothing to be
// left: it is not root's, or is to stay so. What takes root's rights later is done
// by a process that it starts before (root_part.go). key names that among those
// of a data directory.
func leaveRoot(flag, data, key string, part partConfig) error {
	if os.Geteuid() != 0 {
		if flag == "" {
			return nil
		}
		if a, err := readAccount(flag); err != nil || a.UID == os.Geteuid() {
			return err
		}
		return fmt.Errorf("--user %s: only root can become another user, and this is user %d; start it as root, or leave --user out", flag, os.Geteuid())
	}
	dir, err := DataPath(data)
	if err != nil {
		return err
	}
	a, err := ChooseAccount(flag, dir)
	if err != nil {
		return err
	}
	for _, s := range supervisor.Strangers(workersDirectory(dir), a.UID) {
		return fmt.Errorf("process %d (%s) of an earlier run still runs as user %s, and this one is to run as %s; end it first (kill %d), or start with --user %s", s.PID, s.Name, s.User, a, s.PID, s.User)
	}
	if a.UID == 0 {
		return handOver(dir, a)
	}
	made, err := makeDataDirectory(dir)
	defer made.removeEmpty()
	if err != nil {
		return err
	}
	part.UID, part.Workers, part.Made = a.UID, workersDirectory(dir), made
	p, err := startPart(part, dir, key)
	if errors.As(err, new(inUse)) {
		return err // --user root does not help
	}
	if err != nil {
		return fmt.Errorf("the part of the controller that stays root: %w; or start with --user root", err)
	}
	err = handOver(dir, a)
	if errors.Is(err, fs.ErrNotExist) { // a process that had made it has ended meanwhile, and it was empty
		if _, err = makeDataDirectory(dir); err == nil {
			err = handOver(dir, a)
		}
	}
	if err != nil {
		return err
	}
	return a.become(dir, p)
}

// become has the process be the account's, with nothing left of root's rights and
// no way back to them, and executes the program again.
func (a account) become(dir string, p *rootPart) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the thread that executes the program says what it may do
	err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = syscall.Setgroups([]int{})
	}
	if err == nil {
		err = syscall.Setresgid(a.GID, a.GID, a.GID)
	}
	if err == nil {
		err = syscall.Setresuid(a.UID, a.UID, a.UID)
	}
	if err != nil {
		return fmt.Errorf("become %s: %w; name another with --user, or start with --user root", a, err)
	}
	if f, err := os.Open(dir); err != nil {
		return fmt.Errorf("%s cannot use the data directory: %w; let that user pass the directories above it (chmod o+x), choose another --data-dir, or start with --user root", a, err)
	} else if err := f.Close(); err != nil {
		return err
	}
	if unix.Access(exe, unix.X_OK) != nil { // its directory is root's alone
		exe = "/proc/self/exe"
	}
	fd, err := unix.Dup(int(p.alive.Fd())) // which stays open in the program
	if err != nil {
		return err
	}
	env := append(os.Environ(), rootpart.Variable+"="+p.path, aliveVariable+"="+strconv.Itoa(fd))
	return fmt.Errorf("run %s as %s: %w; let that user run it, or start with --user root", exe, a, syscall.Exec(exe, os.Args, env))
}

// program returns the path of this program, for this process to start it again.
func program() string {
	exe, err := os.Executable()
	if err != nil || unix.Access(exe, unix.X_OK) != nil {
		return "/proc/self/exe"
	}
	return exe
}

// advise adds to the error of a controller that has left root what may be the
// reason, and what can be done.
func advise(err error) error {
	if err == nil || rootpart.Path() == "" {
		return err
	}
	text := err.Error()
	if !strings.Contains(text, "permission denied") && !strings.Contains(text, "operation not permitted") {
		return err
	}
	a := account{UID: os.Geteuid()}
	if u, lookup := user.LookupId(strconv.Itoa(a.UID)); lookup == nil {
		a.name = u.Username
	}
	return fmt.Errorf("%w\nroot has started the controller, and it runs as %s: give the file to that user (chown %d FILE, and chmod o+x for directories above it), let it have ports below 1024 (sysctl net.ipv4.ip_unprivileged_port_start), or start with --user root", err, a, a.UID)
}
