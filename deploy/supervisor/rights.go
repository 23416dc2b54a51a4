package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/rootpart"
)

// rights does what this process may lack the privilege for: it limits threads
// and processes, and makes cgroups.
type rights interface {
	thread(l limits) []Unapplied           // of the calling thread, and so of what it forks
	session(pid int, l limits) []Unapplied // of the session that a process leads
	all(id identity, l limits) ([]Unapplied, error)

	// limitGroup sets the limits of cgroups, and makes those of a name that g
	// (nil: none yet) lacks (places.limit).
	limitGroup(g *group, name string, l limits) (*group, []Unapplied)
	joinGroup(g *group, pid int) error
	removeGroup(g *group) error
	sweepGroups(prefix string)
	// beforeFork and afterFork put a process into a group, at its start where
	// that is possible.
	beforeFork(g *group, attr *syscall.SysProcAttr) error
	afterFork(g *group, pid int) error
}

// own is what this process may do by itself.
type own struct{ places *places }

func (own) thread(l limits) []Unapplied                    { return l.applyThread(0) }
func (own) session(pid int, l limits) []Unapplied          { return l.applySession(pid) }
func (own) all(id identity, l limits) ([]Unapplied, error) { return l.applyAll(id) }
func (own) joinGroup(g *group, pid int) error              { return g.join(pid) }
func (own) removeGroup(g *group) error                     { return g.remove() }
func (o own) sweepGroups(prefix string)                    { o.places.sweep(prefix) }
func (own) afterFork(*group, int) error                    { return nil }

func (o own) limitGroup(g *group, name string, l limits) (*group, []Unapplied) {
	return o.places.limit(g, name, l)
}

func (own) beforeFork(g *group, attr *syscall.SysProcAttr) error {
	if g.Version == 2 {
		return g.openFor(attr)
	}
	return g.joinThread(unix.Gettid())
}

// asked sends requests to the root part of the controller, at a socket.
type asked struct{ path string }

// The verbs of the root part (package rootpart).
const (
	verbThread  = "limit-thread"
	verbSession = "limit-session"
	verbProcess = "limit-process"
	verbLimit   = "limit-group"
	verbJoin    = "join-group"
	verbRemove  = "remove-group"
	verbSweep   = "sweep-groups"
)

// rightsRequest is the request of all of them; each looks at its own fields.
type rightsRequest struct {
	PID     int    `json:"pid,omitempty"` // or of a thread
	Started uint64 `json:"started,omitempty"`
	Limits  limits `json:"limits"`
	Group   string `json:"group,omitempty"` // name
}

type rightsAnswer struct {
	Unapplied []Unapplied `json:"unapplied,omitempty"`
	Group     *group      `json:"group,omitempty"`
}

func (a asked) ask(verb string, r rightsRequest) (answer rightsAnswer, err error) {
	err = rootpart.Ask(context.Background(), a.path, verb, r, &answer)
	return answer, err
}

// unapplied is ask for limits: if there is no answer, the limits of the process
// are not in force.
func (a asked) unapplied(verb string, r rightsRequest) []Unapplied {
	answer, err := a.ask(verb, r)
	if err != nil {
		return []Unapplied{{"limits", err.Error()}}
	}
	return answer.Unapplied
}

func (a asked) thread(l limits) []Unapplied {
	return a.unapplied(verbThread, rightsRequest{PID: unix.Gettid(), Limits: l})
}

func (a asked) session(pid int, l limits) []Unapplied {
	return a.unapplied(verbSession, rightsRequest{PID: pid, Limits: l})
}

func (a asked) all(id identity, l limits) ([]Unapplied, error) {
	answer, err := a.ask(verbProcess, rightsRequest{PID: id.pid, Started: id.started, Limits: l})
	if s, gone := readStat(id.pid); err != nil && gone == nil && s.started == id.started {
		return []Unapplied{{"limits", err.Error()}}, nil
	}
	return answer.Unapplied, err
}

func (a asked) limitGroup(g *group, name string, l limits) (*group, []Unapplied) {
	if g != nil {
		name = g.name()
	}
	answer, err := a.ask(verbLimit, rightsRequest{Group: name, Limits: l})
	if err != nil {
		return g, []Unapplied{{"cgroup", err.Error()}}
	}
	return answer.Group, answer.Unapplied
}

func (a asked) joinGroup(g *group, pid int) error {
	_, err := a.ask(verbJoin, rightsRequest{Group: g.name(), PID: pid})
	return err
}

func (a asked) removeGroup(g *group) error {
	_, err := a.ask(verbRemove, rightsRequest{Group: g.name()})
	return err
}

func (a asked) sweepGroups(string) { _, _ = a.ask(verbSweep, rightsRequest{}) } // what stays is tried again

func (a asked) beforeFork(g *group, _ *syscall.SysProcAttr) error {
	if g.Version == 2 { // in which only processes can be moved
		return nil
	}
	return a.joinGroup(g, unix.Gettid())
}

func (a asked) afterFork(g *group, pid int) error {
	if g.Version == 2 {
		return a.joinGroup(g, pid)
	}
	return nil
}

// groupsMost is how many cgroups of one supervisor there may be.
const groupsMost = 1000

// Rights returns the verbs by which the supervisor of a directory, which runs
// as a user, limits its processes: only processes of that user, in cgroups of
// its own.
func Rights(directory string, uid int) (map[string]rootpart.Verb, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	p := &part{uid: uid, prefix: groupPrefix(directory), places: findPlaces()}
	verbs := map[string]rootpart.Verb{}
	for name, do := range map[string]func(rightsRequest) (rightsAnswer, error){
		verbThread:  p.thread,
		verbSession: p.session,
		verbProcess: p.process,
		verbLimit:   p.limitGroup,
		verbJoin:    p.joinGroup,
		verbRemove:  p.removeGroup,
		verbSweep:   p.sweepGroups,
	} {
		verbs[name] = func(_ context.Context, text json.RawMessage) (any, error) {
			var r rightsRequest
			if err := json.Unmarshal(text, &r); err != nil {
				return nil, err
			}
			if _, err := parseCPUs(r.Limits.CPUs); err != nil {
				return nil, err
			}
			if r.Limits.Nice < -20 || r.Limits.Nice > 19 {
				return nil, fmt.Errorf("nice %d; allowed: -20 to 19", r.Limits.Nice)
			}
			if err := checkQuota(r.Limits.CPUQuota); err != nil {
				return nil, err
			}
			if r.Limits.Memory != 0 && r.Limits.Memory < minMemory {
				return nil, fmt.Errorf("memory limit of %d bytes; allowed: 0 (none), or 1 MiB and more", r.Limits.Memory)
			}
			return do(r)
		}
	}
	return verbs, nil
}

// part is the root side of the supervisor.
type part struct {
	uid    int
	prefix string // of the names of its cgroups
	places places
}

func (p *part) thread(r rightsRequest) (rightsAnswer, error) {
	if err := p.theirs(r.PID); err != nil {
		return rightsAnswer{}, err
	}
	return rightsAnswer{Unapplied: r.Limits.applyThread(r.PID)}, nil
}

func (p *part) session(r rightsRequest) (rightsAnswer, error) {
	if err := p.theirs(r.PID); err != nil {
		return rightsAnswer{}, err
	}
	return rightsAnswer{Unapplied: r.Limits.applySession(r.PID)}, nil
}

func (p *part) process(r rightsRequest) (rightsAnswer, error) {
	if err := p.theirs(r.PID); err != nil {
		return rightsAnswer{}, err
	}
	un, err := r.Limits.applyAll(identity{r.PID, r.Started})
	return rightsAnswer{Unapplied: un}, err
}

func (p *part) limitGroup(r rightsRequest) (rightsAnswer, error) {
	if err := p.allowed(r.Group); err != nil {
		return rightsAnswer{}, err
	}
	g := p.places.named(r.Group)
	if there, _ := filepath.Glob(filepath.Join(p.places.memory.parent, p.prefix+"*")); g == nil && len(there) >= groupsMost {
		return rightsAnswer{}, fmt.Errorf("there are %d cgroups already", len(there))
	}
	if there, _ := filepath.Glob(filepath.Join(p.places.cpu.parent, p.prefix+"*")); g == nil && len(there) >= groupsMost {
		return rightsAnswer{}, fmt.Errorf("there are %d cgroups already", len(there))
	}
	g, un := p.places.limit(g, r.Group, r.Limits)
	return rightsAnswer{Group: g, Unapplied: un}, nil
}

func (p *part) joinGroup(r rightsRequest) (rightsAnswer, error) {
	g, err := p.group(r.Group)
	if err == nil {
		err = p.theirs(r.PID)
	}
	switch {
	case err != nil:
		return rightsAnswer{}, err
	case g.Version == 1 && !isFirstThread(r.PID):
		return rightsAnswer{}, g.joinThread(r.PID)
	}
	return rightsAnswer{}, g.join(r.PID)
}

func (p *part) removeGroup(r rightsRequest) (rightsAnswer, error) {
	g, err := p.group(r.Group)
	if err != nil {
		return rightsAnswer{}, err
	}
	return rightsAnswer{}, g.remove()
}

func (p *part) sweepGroups(rightsRequest) (rightsAnswer, error) {
	p.places.sweep(p.prefix)
	return rightsAnswer{}, nil
}

// groupForm is a process's name and a nonce.
var groupForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$`)

// allowed reports a name that no cgroup of the supervisor has.
func (p *part) allowed(name string) error {
	if !strings.HasPrefix(name, p.prefix) || !groupForm.MatchString(strings.TrimPrefix(name, p.prefix)) {
		return fmt.Errorf("%.80q is no cgroup of this controller", name)
	}
	return nil
}

// group returns the cgroups of a name that the supervisor may use.
func (p *part) group(name string) (*group, error) {
	if err := p.allowed(name); err != nil {
		return nil, err
	}
	g := p.places.named(name)
	if g == nil {
		return nil, fmt.Errorf("there is no cgroup %s", name)
	}
	return g, nil
}

// theirs reports a process, or thread, that is not wholly the user's.
func (p *part) theirs(pid int) error {
	ids, err := userIDs(pid)
	if err != nil {
		return err
	}
	want := fmt.Sprint(p.uid)
	if pid <= 0 || len(ids) != 4 || slices.ContainsFunc(ids, func(id string) bool { return id != want }) {
		return fmt.Errorf("process %d is not of user %d", pid, p.uid)
	}
	return nil
}

// userIDs returns the real, effective, saved and file system's user of a process
// or thread (proc_pid_status(5)).
func userIDs(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			return strings.Fields(ids), nil
		}
	}
	return nil, fmt.Errorf("process %d: /proc does not say whose it is", pid)
}

// isFirstThread reports whether a thread is the main thread of its process.
func isFirstThread(tid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	return err == nil && strings.Contains(string(b), fmt.Sprintf("\nTgid:\t%d\n", tid))
}

// Stranger is a supervised process that runs as a user other than the
// supervisor's.
type Stranger struct {
	Name string
	PID  int
	User string // its number
}

// Strangers returns the processes that an earlier supervisor of a directory
// left running as another user.
func Strangers(directory string, uid int) (list []Stranger) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil
	}
	for _, m := range listMarked(directory) {
		if ids, err := userIDs(m.pid); err == nil && len(ids) > 0 && ids[0] != fmt.Sprint(uid) {
			list = append(list, Stranger{m.name, m.pid, ids[0]})
		}
	}
	return list
}
