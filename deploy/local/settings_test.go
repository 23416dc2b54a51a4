package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// limits is a configuration with all kinds of keys.
type limits struct {
	MaxHosts uint8                `yaml:"max_hosts"`
	Timeout  time.Duration        `yaml:"timeout"`
	Listen   string               `yaml:"listen"`
	On       bool                 `yaml:"on"`
	Rate     float64              `yaml:"rate"`
	Switches []flow.DPID          `yaml:"switches"`
	Subnets  []subnet             `yaml:"subnets"`
	Probe    probe                `yaml:"probe"`
	Extra    *probe               `yaml:"extra"`
	Ports    map[string]probe     `yaml:"ports"`
	Labels   map[string]string    `yaml:"labels"`
	Weights  map[string][]float64 `yaml:"weights"`
}

type subnet struct {
	Prefix  string `yaml:"prefix"`
	Gateway string `yaml:"gateway"`
}

type probe struct {
	Interval time.Duration `yaml:"interval"`
	Count    int           `yaml:"count"`
}

func (l *limits) Validate() error {
	if l.MaxHosts == 0 {
		return fmt.Errorf("max_hosts %d: want 1 to 255", l.MaxHosts)
	}
	return nil
}

func defaults() *limits {
	return &limits{
		MaxHosts: 8, Timeout: 3 * time.Second, Listen: "127.0.0.1:6653", Rate: 0.5,
		Switches: []flow.DPID{1, 2}, Subnets: []subnet{{"10.0.0.0/8", "10.0.0.1"}},
		Probe: probe{time.Second, 3}, Ports: map[string]probe{"a": {1, 1}}, Labels: map[string]string{"x": "y"},
	}
}

// hosts and paths are services with and without a configuration.
func configured() []weft.Spec {
	run := func(ctx context.Context, env *weft.Env) error { return weft.Serve(ctx, env) }
	return []weft.Spec{{Name: "hosts", Run: run, Config: defaults()}, {Name: "paths", Run: run}}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weft.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// effective runs hosts with settings and returns its configuration.
func effective(t *testing.T, s *config.Settings) *limits {
	t.Helper()
	var got *limits
	specs := configured()
	specs[0].Run = func(ctx context.Context, env *weft.Env) error {
		got = env.Config.(*limits)
		return weft.Serve(ctx, env)
	}
	if err := start(t, local.Config{Specs: specs, Settings: s})(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(specs[0].Config, defaults()) {
		t.Errorf("the defaults in the Spec have changed: %+v", specs[0].Config)
	}
	return got
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		yaml string
		want func(*limits)
	}{
		{"", func(*limits) {}},
		{"max_hosts: 1", func(l *limits) { l.MaxHosts = 1 }},
		{"timeout: 250ms", func(l *limits) { l.Timeout = 250 * time.Millisecond }},
		{"listen: :6633\non: true\nrate: 2", func(l *limits) { l.Listen, l.On, l.Rate = ":6633", true, 2 }},
		{"switches: [0000000000000005]", func(l *limits) { l.Switches = []flow.DPID{5} }},
		{"switches: []", func(l *limits) { l.Switches = []flow.DPID{} }},
		{"subnets:\n- prefix: 10.1.0.0/16\n  gateway: 10.1.0.1", func(l *limits) { l.Subnets = []subnet{{"10.1.0.0/16", "10.1.0.1"}} }},
		{"probe: {count: 5}", func(l *limits) { l.Probe.Count = 5 }}, // interval stays
		{"extra:\n  interval: 1s", func(l *limits) { l.Extra = &probe{Interval: time.Second} }},
		{"ports: {b: {count: 2}}", func(l *limits) { l.Ports = map[string]probe{"b": {Count: 2}} }},
		{"labels: {z: '1'}", func(l *limits) { l.Labels = map[string]string{"z": "1"} }},
		{"weights: {a: [1, 2.5]}", func(l *limits) { l.Weights = map[string][]float64{"a": {1, 2.5}} }},
	} {
		t.Run(c.yaml, func(t *testing.T) {
			var s config.Settings
			if err := s.Add("hosts", "test", []byte(c.yaml)); err != nil {
				t.Fatal(err)
			}
			want := defaults()
			c.want(want)
			if got := effective(t, &s); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestSetOption(t *testing.T) {
	for _, c := range []struct {
		set  string
		want func(*limits)
	}{
		{"hosts.max_hosts=9", func(l *limits) { l.MaxHosts = 9 }},
		{"hosts.listen=[::1]:6653", func(l *limits) { l.Listen = "[::1]:6653" }},
		{"hosts.listen=", func(l *limits) { l.Listen = "" }},
		{"hosts.listen=12", func(l *limits) { l.Listen = "12" }},
		{"hosts.probe.count=4", func(l *limits) { l.Probe.Count = 4 }},
		{"hosts.extra.interval=2s", func(l *limits) { l.Extra = &probe{Interval: 2 * time.Second} }},
		{"hosts.switches=[7]", func(l *limits) { l.Switches = []flow.DPID{7} }},
		{"hosts.labels={a: b}", func(l *limits) { l.Labels = map[string]string{"a": "b"} }},
	} {
		t.Run(c.set, func(t *testing.T) {
			var s config.Settings
			if err := s.Set(c.set); err != nil {
				t.Fatal(err)
			}
			want := defaults()
			c.want(want)
			if got := effective(t, &s); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
	for _, c := range []struct{ set, want string }{
		{"hosts", "--set hosts: want service.key=value"},
		{"hosts=1", "--set hosts=1: want service.key=value"},
		{"hosts.=1", "want service.key=value"},
		{"hosts.max=1", "--set hosts.max=1: unknown key hosts.max; allowed: extra, labels, listen, max_hosts"},
		{"hosts.probe.cnt=1", "unknown key hosts.probe.cnt; allowed: count, interval"},
		{"hosts.probe={cnt: 1}", "unknown key hosts.probe.cnt; allowed: count, interval"},
		{"hosts.max_hosts.x=1", "hosts.max_hosts has no keys below it"},
		{"hosts.max_hosts=many", `--set hosts.max_hosts=many: hosts.max_hosts: want a whole number from 0 to 255, not "many"`},
		{"hosts.max_hosts=", "hosts.max_hosts: no value; want a whole number"},
		{"hosts.switches=[1", `hosts.switches: want a list, each of it a DPID, not "[1"`},
		{"hosts.max_hosts=0", "--set hosts.max_hosts=0: service hosts: max_hosts 0: want 1 to 255"},
		{"nobody.x=1", `--set nobody.x=1: settings for "nobody", which is not among the services that run: hosts, paths`},
		{"paths.x=1", "service paths has nothing to configure"},
	} {
		t.Run(c.set, func(t *testing.T) {
			var s config.Settings
			err := s.Set(c.set)
			if err == nil {
				_, err = local.New(local.Config{Specs: configured(), Settings: &s})
			}
			wantError(t, err, c.want)
		})
	}
}

func TestFile(t *testing.T) {
	path := writeFile(t, `# a comment
services: [hosts]
pipeline: []
hosts:
  max_hosts: 2  # few
  probe:
    count: 9
`)
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := f.Select(configured())
	if err != nil || len(specs) != 1 || specs[0].Name != "hosts" {
		t.Errorf("selected %v, %v; want hosts", specs, err)
	}
	if err := f.Settings.Set("hosts.max_hosts=3"); err != nil { // the later one counts
		t.Fatal(err)
	}
	want := defaults()
	want.MaxHosts, want.Probe.Count = 3, 9
	if got := effective(t, f.Settings); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := config.Check(path, configured()); err != nil {
		t.Error(err)
	}
	for _, empty := range []string{"", "# nothing\n", "hosts:\n", "hosts: {}\n"} {
		if err := config.Check(writeFile(t, empty), configured()); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestFileMistakes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		want       string
	}{
		{"unknown service", "hosts:\n  on: true\nhost:\n  on: true\n", 3, `settings for "host", which is not among the services that run: hosts, paths`},
		{"unknown key", "hosts:\n  on: true\n  maxhosts: 3\n", 3, "unknown key hosts.maxhosts; allowed: extra, labels, listen, max_hosts, on, ports, probe, rate, subnets, switches, timeout, weights"},
		{"unknown nested key", "hosts:\n  probe:\n    count: 1\n    every: 3\n", 4, "unknown key hosts.probe.every; allowed: count, interval"},
		{"unknown key in a list", "hosts:\n  subnets:\n  - prefix: a\n  - gw: b\n", 4, "unknown key hosts.subnets[1].gw; allowed: gateway, prefix"},
		{"unknown key in a map", "hosts:\n  ports:\n    one:\n      cnt: 1\n", 4, "unknown key hosts.ports.one.cnt; allowed: count, interval"},
		{"text for a number", "hosts:\n  max_hosts: many\n", 2, `hosts.max_hosts: want a whole number from 0 to 255, not "many"`},
		{"number too large", "hosts:\n  max_hosts: 256\n", 2, `hosts.max_hosts: want a whole number from 0 to 255, not "256"`},
		{"negative number", "hosts:\n  max_hosts: -1\n", 2, `hosts.max_hosts: want a whole number from 0 to 255, not "-`},
		{"text for a switch", "hosts:\n  on: maybe\n", 2, `hosts.on: want true or false, not "maybe"`},
		{"bad duration", "hosts:\n  timeout: soon\n", 2, `hosts.timeout: want a duration, such as 500ms or 3s, not "soon"`},
		{"duration without a unit", "hosts:\n  timeout: 3\n", 2, "hosts.timeout: want a duration, such as 500ms or 3s"},
		{"no value", "hosts:\n  probe:\n", 2, "hosts.probe: no value; give one, or take the key out"},
		{"bad dpid", "hosts:\n  switches:\n  - 1\n  - xyz\n", 4, "want up to 16 hex digits"},
		{"keys for a number", "hosts:\n  max_hosts:\n    a: 1\n", 3, "hosts.max_hosts: want a whole number from 0 to 255, not keys with values"},
		{"list for text", "hosts:\n  listen: [a]\n", 2, "hosts.listen: want text, not a list"},
		{"number for a list", "hosts:\n  subnets: 3\n", 2, "hosts.subnets: want a list"},
		{"number for keys", "hosts:\n  probe: 3\n", 2, "hosts.probe: want keys with values; allowed: count, interval"},
		{"number for a section", "hosts: 3\n", 1, "hosts: want keys with values; allowed: extra"},
		{"not valid", "hosts:\n  on: true\n  max_hosts: 0\n", 3, "service hosts: max_hosts 0: want 1 to 255"},
		{"not YAML", "hosts:\n  on: [true\n", 2, "not well-formed YAML"},
		{"key twice", "hosts:\n  on: true\n  on: false\n", 3, "key on is there twice, first on line 2"},
		{"section twice", "hosts:\n  on: true\npaths:\nhosts:\n", 4, "key hosts is there twice, first on line 1"},
		{"list at the top", "- hosts\n", 1, "want keys with values: services, pipeline, or the name of a service"},
		{"services no list", "services: hosts\n", 1, "services: want a list of services"},
		{"services unknown", "services:\n- hosts\n- host\n", 3, `services: unknown service "host"; allowed: hosts, paths`},
		{"services twice", "services: [hosts, hosts]\n", 1, "hosts is listed twice"},
		{"services numbers", "services: [1]\n", 1, "want the name of a service"},
		{"settings of a service left out", "services: [paths]\nhosts:\n  on: true\n", 2, "which is not among the services that run: paths"},
		{"nothing to configure", "paths:\n  a: 1\n", 1, "service paths has nothing to configure"},
		{"two documents", "hosts:\n---\npaths:\n", 0, "2 YAML documents"},
		{"pipeline", "pipeline: [hosts]\n", 1, "pipeline: service hosts is not a stage"},
		{"no services", "services: []\n", 1, "services: the list is empty; leave the key out to run all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, c.text)
			err := config.Check(path, configured())
			place := path + ": "
			if c.line > 0 {
				place = fmt.Sprintf("%s:%d: ", path, c.line)
			}
			wantError(t, err, place, c.want)
			if err != nil && strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
	_, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
	wantError(t, err, "none.yaml", "no such file")
}

func TestAllMistakesOfAFileAreReported(t *testing.T) {
	path := writeFile(t, "hosts:\n  a: 1\n  probe:\n    b: 2\nnobody:\n  c: 3\n")
	wantError(t, config.Check(path, configured()), path+":2: ", path+":4: ", path+":5: ")
}
