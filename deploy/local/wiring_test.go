package local_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
)

func TestWiringMistakes(t *testing.T) {
	run := func(context.Context, *weft.Env) error { return nil }
	find, list := weft.Methods(api.FindHost), weft.Methods(api.FindHost, api.FindHost)
	host := weft.Subjects(api.HostChangedEvent)
	for _, c := range []struct {
		name  string
		specs []weft.Spec
		order []string
		want  string
	}{
		{"server absent", []weft.Spec{{Name: "gateway", Run: run, Calls: find}}, nil,
			"service gateway calls hosts.FindHost, which service hosts serves, but hosts is not among the services that run; add hosts or leave out gateway"},
		{"not served", []weft.Spec{{Name: "hosts", Run: run}, {Name: "gateway", Run: run, Calls: find}}, nil,
			"service gateway calls hosts.FindHost, but the Spec of hosts does not list it in Serves"},
		{"publisher absent", []weft.Spec{{Name: "paths", Run: run, Subscribes: host}}, nil,
			"service paths subscribes to hosts.HostChanged, which service hosts publishes, but hosts is not among the services that run"},
		{"not published", []weft.Spec{{Name: "hosts", Run: run}, {Name: "paths", Run: run, Subscribes: host}}, nil,
			"but the Spec of hosts does not list it in Publishes"},
		{"name twice", []weft.Spec{{Name: "a", Run: run}, {Name: "a", Run: run}}, nil, "service a is listed twice"},
		{"bad name", []weft.Spec{{Name: "Hosts", Run: run}}, nil, `service "Hosts": a name is lower-case`},
		{"reserved name", []weft.Spec{{Name: "pipeline", Run: run}}, nil, "service pipeline: the name is reserved"},
		{"no run", []weft.Spec{{Name: "a"}}, nil, "service a: its Spec has no Run"},
		{"config by value", []weft.Spec{{Name: "a", Run: run, Config: byValue{}}}, nil, "make it a pointer to a struct"},
		{"foreign method", []weft.Spec{{Name: "a", Run: run, Serves: find}}, nil, "hosts.FindHost has the prefix of service hosts"},
		{"foreign subject", []weft.Spec{{Name: "a", Run: run, Publishes: host}}, nil, "hosts.HostChanged has the prefix of service hosts"},
		{"malformed method", []weft.Spec{{Name: "a", Run: run, Calls: weft.Methods(api.Method[int, int]{Name: "find"})}}, nil,
			`name "find" is not of the form service.Name`},
		{"served twice", []weft.Spec{{Name: "hosts", Run: run, Serves: list}}, nil, "a method has one server"},
		{"published twice", []weft.Spec{{Name: "hosts", Run: run, Publishes: host}, {Name: "b", Run: run, Publishes: host}}, nil, "a subject has one publisher"},
		{"called twice", []weft.Spec{{Name: "hosts", Run: run, Serves: find}, {Name: "b", Run: run, Calls: list}}, nil, "lists hosts.FindHost twice in Calls"},
		{"own event", []weft.Spec{{Name: "hosts", Run: run, Publishes: host, Subscribes: host}}, nil, "subscribes to its own hosts.HostChanged"},
		{"bucket name", []weft.Spec{{Name: "a", Run: run, Buckets: []string{"a.b"}}}, nil, `bucket "a.b"`},
		{"bucket twice", []weft.Spec{{Name: "a", Run: run, Buckets: []string{"b", "b"}}}, nil, "lists bucket b twice"},
		{"no store", []weft.Spec{{Name: "a", Run: run, Buckets: []string{"b"}}}, nil, "service a keeps durable state (b), but there is no store"},
		{"two pipelines", []weft.Spec{{Name: "a", Run: run, Pipeline: true}, {Name: "b", Run: run, Pipeline: true}}, nil, "services a and b both run the packet-in pipeline"},
		{"stage absent", []weft.Spec{{Name: "hosts", Run: run, Stage: true}}, []string{"hosts", "nat"},
			"pipeline: nat is not among the services that run; take it out or add the service; stages are: hosts"},
		{"not a stage", []weft.Spec{{Name: "a", Run: run}}, []string{"a"}, "pipeline: service a is not a stage; take it out; stages are: none"},
		{"stage twice", []weft.Spec{{Name: "hosts", Run: run, Stage: true}}, []string{"hosts", "hosts"}, "pipeline: stage hosts is listed twice"},
		{"stage left out", []weft.Spec{{Name: "hosts", Run: run, Stage: true}, {Name: "nat", Run: run, Stage: true}}, []string{"hosts"},
			"pipeline: service nat is a stage but not listed"},
		{"stage without a place", []weft.Spec{{Name: "mirror", Run: run, Stage: true}}, nil, "pipeline: service mirror is a stage but not listed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := local.New(local.Config{Specs: c.specs, Pipeline: c.order})
			wantError(t, err, c.want)
		})
	}
}

// byValue is a configuration that is not a pointer.
type byValue struct{}

func (byValue) Validate() error { return nil }

func TestAllMistakesAreReported(t *testing.T) {
	_, err := local.New(local.Config{Specs: []weft.Spec{{Name: "a"}, {Name: "b"}}, Pipeline: []string{"c"}})
	wantError(t, err, "service a", "service b", "pipeline: c")
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("%d lines, want 3:\n%v", n+1, err)
	}
}

func TestPartial(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		asked := make(chan error, 1)
		alone := weft.Spec{Name: "gateway", Calls: weft.Methods(api.FindHost), Subscribes: weft.Subjects(api.HostChangedEvent),
			Run: func(ctx context.Context, env *weft.Env) error {
				weft.On(env, api.HostChangedEvent, func(context.Context, *api.HostChanged) {})
				if err := weft.Ready(ctx, env); err != nil {
					return err
				}
				_, err := weft.Call(ctx, env, api.FindHost, &api.FindHostRequest{})
				asked <- err
				<-ctx.Done()
				return nil
			}}
		start(t, local.Config{Specs: []weft.Spec{alone}, Partial: true, Encoded: encoded})
		if err := <-asked; api.KindOf(err) != codes.Unavailable {
			t.Errorf("got %v, want Unavailable", err)
		}
		// What is wrong with services that are there is still an error.
		_, err := local.New(local.Config{Specs: []weft.Spec{alone, idle("hosts")}, Partial: true})
		wantError(t, err, "the Spec of hosts does not list it in Serves")
	})
}

func TestEffective(t *testing.T) {
	var s config.Settings
	if err := s.Set("hosts.max_hosts=4"); err != nil {
		t.Fatal(err)
	}
	specs := append(configured(), weft.Spec{Name: "forwarding", Stage: true, Run: configured()[0].Run}, weft.Spec{Name: "discovery", Stage: true, Run: configured()[0].Run})
	w, err := local.New(local.Config{Specs: specs, Settings: &s})
	if err != nil {
		t.Fatal(err)
	}
	if c := w.Effective("hosts"); c.(*limits).MaxHosts != 4 {
		t.Errorf("effective configuration %+v, want max_hosts 4", c)
	}
	if c := w.Effective("nobody"); c != nil {
		t.Errorf("configuration of nobody: %v", c)
	}
	if got := strings.Join(w.Pipeline(), " "); got != "discovery forwarding" {
		t.Errorf("pipeline %s, want discovery forwarding", got)
	}
}
