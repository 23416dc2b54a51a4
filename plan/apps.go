package plan

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"weft"

	"weft/internal/document"
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
)

// App is a stage of the pipeline that lives outside Weft and attaches to any
// worker (docs/apps.md).
type App struct {
	// Name is that under which it attaches.
	Name string
	// Absent says what becomes of its packets while it is not attached or when
	// it does not answer in time: hold, skip or drop.
	Absent string
	// Timeout is how long it may take to answer a batch of packets.
	Timeout time.Duration
}

// appName is what an app may be called, as in package deploy/outside.
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
	a := App{Name: name}
	if v.Kind != document.Null {
		r.keys(path, v,
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

// apps checks the apps by themselves.
func (j *judge) apps() {
	p := j.plan
	if len(p.Apps) > maxApps {
		j.fail("apps", "apps: %d of them; a plan has at most %d", len(p.Apps), maxApps)
	}
	for i, a := range p.Apps {
		path := "apps." + a.Name
		if !appName.MatchString(a.Name) {
			j.fail(path, "%s: the name of an app is up to 40 lower-case letters, digits and dashes, and begins with a letter, not %q", path, a.Name)
		}
		if i > 0 && p.Apps[i-1].Name == a.Name {
			j.fail(path, "%s: the name is there twice; give each app its own", path)
		}
		j.choice(path+".absent", a.Absent, Absents())
		if a.Timeout < minAppTimeout || a.Timeout > maxAppTimeout {
			j.fail(path+".timeout", "%s.timeout: want %v to %v, not %v", path, minAppTimeout, maxAppTimeout, max(a.Timeout, 0))
		}
		if len(p.Pipeline) > 0 && !p.unread["pipeline"] && !slices.Contains(p.Pipeline, a.Name) {
			j.fail(path, "%s: the app is not in pipeline, so it would see no packet; list it there in its place, or take it out here", path)
		}
	}
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
func (p *Plan) withApps(stages []string) []string {
	at := slices.Index(stages, "forwarding")
	if at < 0 {
		at = len(stages)
	}
	for i, a := range p.Apps {
		stages = slices.Insert(stages, at+i, a.Name)
	}
	return stages
}

// appsText says where in the pipeline each app is, empty if there is none.
func (p *Plan) appsText(specs []weft.Spec) string {
	var b strings.Builder
	for i, stage := range p.Stages(specs) {
		a := p.App(stage)
		if a == nil {
			continue
		}
		before, after := "first", "the last stage"
		if i > 0 {
			before = "after " + p.Stages(specs)[i-1]
		}
		if list := p.Stages(specs); i+1 < len(list) {
			after = "before " + list[i+1]
		}
		b.WriteString("\napp " + a.Name + ": " + before + ", " + after + "; " + map[string]string{
			AbsentHold: "packets wait while it is absent", AbsentSkip: "skipped while it is absent", AbsentDrop: "packets are dropped while it is absent",
		}[a.Absent] + " or does not answer within " + a.Timeout.String() + "\n")
	}
	return b.String()
}
