package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/internal/testwait"
)

// server serves FindHost and publishes HostChanged under the name hosts.
func server(run func(context.Context, *weft.Env) error) weft.Spec {
	return weft.Spec{Name: "hosts", Serves: weft.Methods(api.FindHost), Publishes: weft.Subjects(api.HostChangedEvent), Run: run}
}

// client calls FindHost under the name gateway.
func client(run func(context.Context, *weft.Env) error) weft.Spec {
	return weft.Spec{Name: "gateway", Calls: weft.Methods(api.FindHost), Run: run}
}

// listener subscribes to HostChanged under the name paths.
func listener(run func(context.Context, *weft.Env) error) weft.Spec {
	return weft.Spec{Name: "paths", Subscribes: weft.Subjects(api.HostChangedEvent), Run: run}
}

// answering serves FindHost with a function.
func answering(h func(context.Context, *api.FindHostRequest) (*api.Host, error)) weft.Spec {
	return server(func(ctx context.Context, env *weft.Env) error {
		weft.Handle(env, api.FindHost, h)
		return weft.Serve(ctx, env)
	})
}

// idle is a service that does nothing.
func idle(name string) weft.Spec {
	return weft.Spec{Name: name, Run: func(ctx context.Context, env *weft.Env) error { return weft.Serve(ctx, env) }}
}

// start runs a worker until the test ends and returns a function that stops it
// and returns its error.
func start(t testing.TB, c local.Config) (stop func() error) {
	t.Helper()
	w, err := local.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() }) // tests that want the error have called it
	select {
	case <-w.Started():
	case err := <-done:
		t.Fatalf("the worker did not start: %v", err)
	}
	return stop
}

// run runs a worker until it ends by itself.
func run(t *testing.T, c local.Config) error {
	t.Helper()
	w, err := local.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	err = w.Run(ctx)
	if ctx.Err() != nil {
		t.Fatal("the worker did not end by itself")
	}
	return err
}

// inBothModes runs a test by pointer and encoded.
func inBothModes(t *testing.T, f func(t *testing.T, encoded bool)) {
	t.Run("pointer", func(t *testing.T) { f(t, false) })
	t.Run("encoded", func(t *testing.T) { f(t, true) })
}

// wantError checks that an error says all of the given texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that says %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q\ndoes not say  %q", err, text)
		}
	}
}

func TestServicesStopInReverseOrder(t *testing.T) {
	var mu sync.Mutex
	var stopped []string
	spec := func(name string) weft.Spec {
		return weft.Spec{Name: name, Run: func(ctx context.Context, env *weft.Env) error {
			err := weft.Serve(ctx, env)
			mu.Lock()
			defer mu.Unlock()
			stopped = append(stopped, name)
			return err
		}}
	}
	stop := start(t, local.Config{Specs: []weft.Spec{spec("a"), spec("b"), spec("c")}})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(stopped); got != "[c b a]" {
		t.Errorf("stopped in the order %s, want [c b a]", got)
	}
}

func TestReadyNamesWhoIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ *weft.Env) error { <-ctx.Done(); return nil }
		err := run(t, local.Config{
			Specs: []weft.Spec{idle("quick"), {Name: "slow", Run: slow}, {Name: "slower", Run: slow}},
		})
		wantError(t, err, "slow, slower", "weft.Ready")
		if strings.Contains(err.Error(), "quick") {
			t.Errorf("error %q names a service that was ready", err)
		}
	})
}

// TestReadyAfterAnEarlierMaster: who can stand by may wait for a master of an
// earlier plan for longer than others may set themselves up.
func TestReadyAfterAnEarlierMaster(t *testing.T) {
	stop := start(t, local.Config{
		Specs: []weft.Spec{{Name: "heir", Scale: weft.PerPartition, Standby: true, Run: func(ctx context.Context, env *weft.Env) error {
			time.Sleep(200 * time.Millisecond)
			return weft.Serve(ctx, env)
		}}},
		ReadyTimeout: 20 * time.Millisecond,
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestEarlyEndStopsWorker(t *testing.T) {
	broken := errors.New("port 6653 is in use")
	for _, c := range []struct {
		name string
		run  func(context.Context, *weft.Env) error
		want []string
	}{
		{"error before ready", func(context.Context, *weft.Env) error { return broken }, []string{"service bad: port 6653"}},
		{"error after ready", func(ctx context.Context, env *weft.Env) error {
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			return broken
		}, []string{"service bad: port 6653"}},
		{"nothing", func(context.Context, *weft.Env) error { return nil }, []string{"service bad stopped by itself", "weft.Serve"}},
		{"cancelled by nobody", func(context.Context, *weft.Env) error { return context.Canceled }, []string{"service bad stopped by itself"}},
		{"panic", func(context.Context, *weft.Env) error { panic("out of wits") }, []string{"service bad: panic in Run: out of wits", "worker_test.go"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(t, local.Config{Specs: []weft.Spec{idle("good"), {Name: "bad", Run: c.run}}})
			wantError(t, err, c.want...)
		})
	}
}

func TestServiceThatDoesNotStop(t *testing.T) {
	release, ready := make(chan struct{}), make(chan struct{})
	defer close(release)
	stubborn := weft.Spec{Name: "stubborn", Run: func(ctx context.Context, env *weft.Env) error {
		if err := weft.Ready(ctx, env); err != nil {
			return err
		}
		close(ready)
		<-release
		return nil
	}}
	stop := start(t, local.Config{Specs: []weft.Spec{idle("good"), stubborn}, StopTimeout: 20 * time.Millisecond})
	<-ready
	wantError(t, stop(), "service stubborn has not stopped within 20ms")
}

func TestErrorsOfStopAreJoined(t *testing.T) {
	spec := func(name string) weft.Spec {
		return weft.Spec{Name: name, Run: func(ctx context.Context, env *weft.Env) error {
			if err := weft.Serve(ctx, env); err != nil {
				return err
			}
			return errors.New("disk full")
		}}
	}
	stop := start(t, local.Config{Specs: []weft.Spec{spec("a"), spec("b")}})
	wantError(t, stop(), "service a: disk full", "service b: disk full")
}

func TestSetUpMistakes(t *testing.T) {
	serve := func(ctx context.Context, env *weft.Env) error { return weft.Serve(ctx, env) }
	open := func(ctx context.Context, env *weft.Env) error { return weft.Serve(ctx, env) }
	for _, c := range []struct {
		name string
		spec weft.Spec
		want string
	}{
		{"no handler", server(serve), "lists hosts.FindHost in Serves, but has no handler"},
		{"handler twice", server(func(ctx context.Context, env *weft.Env) error {
			for range 2 {
				weft.Handle(env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) { return nil, nil })
			}
			return weft.Serve(ctx, env)
		}), "registers the handler of hosts.FindHost twice"},
		{"no stage", weft.Spec{Name: "forwarding", Stage: true, Run: open}, "says Stage, but registers none"},
		{"not declared", weft.Spec{Name: "hosts", Run: func(ctx context.Context, env *weft.Env) error {
			weft.Handle(env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) { return nil, nil })
			return weft.Serve(ctx, env)
		}}, "does not list in Serves"},
		{"late", server(func(ctx context.Context, env *weft.Env) error {
			h := func(context.Context, *api.FindHostRequest) (*api.Host, error) { return nil, nil }
			weft.Handle(env, api.FindHost, h)
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			weft.Handle(env, api.FindHost, h)
			return nil
		}), "registers the handler of hosts.FindHost after weft.Ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, run(t, local.Config{Specs: []weft.Spec{c.spec}}), c.want)
		})
	}
	t.Run("no handler of events", func(t *testing.T) {
		quiet := server(func(ctx context.Context, env *weft.Env) error {
			weft.Handle(env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) { return nil, nil })
			return weft.Serve(ctx, env)
		})
		wantError(t, run(t, local.Config{Specs: []weft.Spec{quiet, listener(serve)}}), "lists hosts.HostChanged in Subscribes, but has no handler")
	})
}

// TestNothingIsLeftBehind counts goroutines before and after a worker that has
// called and published.
func TestNothingIsLeftBehind(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		before := runtime.NumGoroutine()
		serving := server(func(ctx context.Context, env *weft.Env) error {
			weft.Handle(env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) {
				weft.Publish(env, api.HostChangedEvent, numbered(1))
				return &api.Host{}, nil
			})
			return weft.Serve(ctx, env)
		})
		called := make(chan struct{})
		stop := start(t, local.Config{Encoded: encoded, Specs: []weft.Spec{
			serving, hearing(func(context.Context, *api.HostChanged) {}),
			client(func(ctx context.Context, env *weft.Env) error {
				if err := weft.Ready(ctx, env); err != nil {
					return err
				}
				_, err := weft.Call(ctx, env, api.FindHost, &api.FindHostRequest{})
				close(called)
				<-ctx.Done()
				return err
			}),
		}})
		<-called
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(testwait.Limit); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			}
		}
	})
}

func TestWorkerRunsOnce(t *testing.T) {
	w, err := local.New(local.Config{Specs: []weft.Spec{idle("a")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.Run(ctx), "has run already")
}

// logTo returns a logger that writes to a buffer, which may be read once the
// worker has stopped.
func logTo(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
