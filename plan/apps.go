package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// What becomes of packets for an app that is not attached, or does not answer.
const (
	AbsentHold = "hold" // they wait for it, as for any stage that is away
	AbsentSkip = "skip" // the next stage sees them at once
	AbsentDrop = "drop" // they are dropped, and counted
)

// Absents returns what a plan may name as absent.
func Absents() []string { return []string{AbsentHold, AbsentSkip, AbsentDrop} }

// The bounds of an app's timeout, and its default.
const (
	minAppTimeout     = 10 * time.Millisecond
	maxAppTimeout     = 10 * time.Second
	defaultAppTimeout = time.Second
	maxApps           = 32
	defaultAppEntries = 1000
	defaultAppPackets = 1000
)

// Kinds of apps.
const (
	AppStage    = "stage"    // it has a place in the pipeline
	AppObserver = "observer" // it is sent copies, or only calls methods
)

// Operations returns what a plan may give an app besides the methods of services:
// the operations of a stage's decisions.
func Operations() []string { return []string{"add_flow", "delete_flow", "packet_out", "groups"} }

// App is a stage of the pipeline, or an observer, that lives outside Weft and
// attaches to any worker (docs/apps.md).
type App struct {
	// Name is that under which it attaches.
	Name string
	// Kind is stage or observer; an observer has no place in the pipeline, and
	// needs one here only to be given what it may do.
	Kind string
	// Absent says what becomes of its packets while it is not attached or when
	// it does not answer in time: hold, skip or drop.
	Absent string
	// Timeout is how long it may take to answer a batch of packets.
	Timeout time.Duration
	// May lists the methods that it may call besides those that only read, as
	// SERVICE.METHOD or SERVICE.*, and the operations that its decisions may hold:
	// add_flow, delete_flow, packet_out, groups.
	May []string
	// Switches are those on which it may change something, as in partitions; none
	// is all.
	Switches []string
	// Tables are those in which it may have flow entries; none is all.
	Tables []int
	// Entries is how many flow entries it may have at once.
	Entries int
	// PacketsPerS is how many packets a second it may have switches send.
	PacketsPerS int
}

// appName is what an app may be called, as in package deploy/apps.
var appName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// App returns the app of a name, nil if there is none.
func (p *Plan) App(name string) *App {
	if i := slices.IndexFunc(p.Apps, func(a App) bool { return a.Name == name }); i >= 0 {
		return &p.Apps[i]
	}
	return nil
}

// app reads one app; nothing behind its name is all defaults.
func (r *reader) app(name, path string, v document.Value) {
	a := App{Name: name, Entries: defaultAppEntries, PacketsPerS: defaultAppPackets}
	if v.Kind != document.Null {
		r.keys(path, v,
			field{"kind", r.choice(&a.Kind, []string{AppStage, AppObserver})},
			field{"may", r.words(&a.May, "methods and operations, such as [flowrules.AddFlows, packet_out]")},
			field{"switches", r.words(&a.Switches, "switches, such as [1-8, 10]")},
			field{"tables", func(path string, v document.Value) {
				var list []string
				r.words(&list, "tables, such as [0]")(path, v)
				for _, s := range list {
					n, err := strconv.Atoi(s)
					if err != nil {
						r.fail(v.Line, "%s: want numbers of tables, not %.40q", path, s)
					}
					a.Tables = append(a.Tables, n)
				}
			}},
			field{"entries", r.number(&a.Entries)},
			field{"packets_per_s", r.number(&a.PacketsPerS)},
			field{"absent", r.choice(&a.Absent, Absents())},
			field{"timeout", func(path string, v document.Value) {
				d, err := time.ParseDuration(v.Text)
				if (v.Kind != document.Word && v.Kind != document.Plain) || err != nil {
					r.fail(v.Line, "%s: want a time, such as 500ms or 1s, not %s", path, v.Short())
					return
				}
				if a.Timeout = d; d == 0 {
					a.Timeout = -1 // said, and wrong
				}
			}})
	}
	r.plan.Apps = append(r.plan.Apps, a)
}

// words reads a list of words and numbers.
func (r *reader) words(to *[]string, what string) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Kind != document.List {
			r.refuse(path, v.Line, "%s: want a list of %s, not %s", path, what, v.Short())
			return
		}
		for _, item := range v.Items {
			if item.Kind != document.Word && item.Kind != document.Plain {
				r.refuse(path, item.Line, "%s: want a list of %s, not %s in it", path, what, item.Short())
				return
			}
			*to = append(*to, item.Text)
		}
	}
}

// apps checks the apps by themselves.
func (j *judge) apps() {
	p := j.plan
	if len(p.Apps) > maxApps {
		j.fail("apps", "apps: %d of them; a plan has at most %d", len(p.Apps), maxApps)
	}
	for i, a := range p.Apps[:min(len(p.Apps), maxApps)] {
		path := "apps." + a.Name
		if !appName.MatchString(a.Name) {
			j.fail(path, "%s: the name of an app is up to 40 lower-case letters, digits and dashes, and begins with a letter, not %q", path, a.Name)
		}
		for _, other := range p.Apps[:i] {
			if flow.MarkOf(other.Name)&0xfff == flow.MarkOf(a.Name)&0xfff && other.Name != a.Name {
				j.fail(path, "%s: its entries and groups could not be told from those of %s, whose name has the same mark; rename one", path, other.Name)
			}
		}
		if i > 0 && p.Apps[i-1].Name == a.Name {
			j.fail(path, "%s: the name is there twice; give each app its own", path)
		}
		j.choice(path+".absent", a.Absent, Absents())
		if a.Timeout < minAppTimeout || a.Timeout > maxAppTimeout {
			j.fail(path+".timeout", "%s.timeout: want %v to %v, not %v", path, minAppTimeout, maxAppTimeout, max(a.Timeout, 0))
		}
		j.grant(path, &a)
		if a.Kind == AppObserver {
			if slices.Contains(p.Pipeline, a.Name) {
				j.fail(path, "%s: an observer has no place in pipeline; take it out there, or make it kind: stage", path)
			}
			continue
		}
		if len(p.Pipeline) > 0 && !p.unread["pipeline"] && !slices.Contains(p.Pipeline, a.Name) {
			j.fail(path, "%s: the app is not in pipeline, so it would see no packet; list it there in its place, or take it out here", path)
		}
	}
}

// mayForm is what a plan may give an app.
var mayForm = regexp.MustCompile(`^[a-z][a-z0-9]*\.(\*|[A-Z][A-Za-z]*)$`)

// grant checks what an app may do.
func (j *judge) grant(path string, a *App) {
	for _, m := range a.May {
		if !mayForm.MatchString(m) && !slices.Contains(Operations(), m) {
			j.fail(path+".may", "%s.may: want SERVICE.METHOD, SERVICE.* or one of %s, not %.80q", path, strings.Join(Operations(), ", "), m)
		}
		if strings.HasPrefix(m, "gateway.") {
			j.fail(path+".may", "%s.may: %s is an administrator's, who uses the northbound; take it out", path, m)
		}
	}
	for _, s := range a.Switches {
		if _, err := flow.ParseDPIDRange(s); err != nil {
			j.fail(path+".switches", "%s.switches: %v", path, err)
		}
	}
	for _, n := range a.Tables {
		if n < 0 || n > 254 {
			j.fail(path+".tables", "%s.tables: %d: want 0 to 254", path, n)
		}
	}
	if a.Entries < 0 || a.Entries > 1_000_000 {
		j.fail(path+".entries", "%s.entries: %d: want 0 to 1000000", path, a.Entries)
	}
	if a.PacketsPerS < 0 || a.PacketsPerS > 1_000_000 {
		j.fail(path+".packets_per_s", "%s.packets_per_s: %d: want 0 to 1000000", path, a.PacketsPerS)
	}
}

// MayCall reports whether a plan gives an app a method, service.Method, or an
// operation of its decisions.
func (a *App) MayCall(method string) bool {
	service, _, named := strings.Cut(method, ".")
	return slices.Contains(a.May, method) || named && slices.Contains(a.May, service+".*")
}

// apps checks that apps are not called as services are.
func (f *fit) apps() {
	for _, a := range f.plan.Apps {
		if specOf(f.specs, a.Name) != nil {
			path := "apps." + a.Name
			f.fail(path, "%s: a service is called so; call the app something else", path)
		}
	}
}

// withApps returns the stages of a plan that does not list them, with its apps
// in front of forwarding.
func withApps(stages []string, apps []App) []string {
	at := slices.Index(stages, "forwarding")
	if at < 0 {
		at = len(stages)
	}
	for _, a := range apps {
		if a.Kind != AppObserver {
			stages = slices.Insert(stages, at, a.Name)
			at++
		}
	}
	return stages
}
