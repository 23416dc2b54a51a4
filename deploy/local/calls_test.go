package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
)

// caller starts a worker with the given server and returns the environment of
// a client of it.
func caller(t testing.TB, c local.Config, servers ...weft.Spec) *weft.Env {
	t.Helper()
	var env *weft.Env
	ready := make(chan struct{})
	c.Specs = append(servers, client(func(ctx context.Context, e *weft.Env) error {
		env = e
		close(ready)
		return weft.Serve(ctx, e)
	}))
	start(t, c)
	<-ready
	return env
}

func TestCall(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		var seen *api.FindHostRequest
		env := caller(t, local.Config{Encoded: encoded}, answering(func(_ context.Context, req *api.FindHostRequest) (*api.Host, error) {
			seen = req
			return &api.Host{Mac: "for " + req.GetAddress()}, nil
		}))
		req := &api.FindHostRequest{Address: "10.0.0.1"}
		host, err := weft.Call(t.Context(), env, api.FindHost, req)
		if err != nil || host.GetMac() != "for 10.0.0.1" {
			t.Fatalf("got %v, %v", host, err)
		}
		if passed := seen == req; passed == encoded {
			t.Errorf("request passed by pointer: %v, want %v", passed, !encoded)
		}
	})
}

func TestCallErrors(t *testing.T) {
	cause := errors.New("flood")
	for _, c := range []struct {
		name string
		err  error
		kind codes.Code
		text string
	}{
		{"of a kind", api.Errorf(codes.NotFound, "no host 10.0.0.9"), codes.NotFound, "no host 10.0.0.9"},
		{"wrapped", fmt.Errorf("look up: %w", api.Errorf(codes.NotFound, "no host")), codes.NotFound, "look up: no host"},
		{"plain", cause, codes.Unknown, "flood"},
		{"deadline", fmt.Errorf("ask switch: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "ask switch"},
		{"cancelled", context.Canceled, codes.Canceled, "canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBothModes(t, func(t *testing.T, encoded bool) {
				env := caller(t, local.Config{Encoded: encoded}, answering(func(context.Context, *api.FindHostRequest) (*api.Host, error) {
					return nil, c.err
				}))
				host, err := weft.Call(t.Context(), env, api.FindHost, &api.FindHostRequest{})
				wantError(t, err, c.text)
				if host != nil || api.KindOf(err) != c.kind {
					t.Errorf("got %v, kind %v; want nil, %v", host, api.KindOf(err), c.kind)
				}
				if !encoded && !errors.Is(err, c.err) {
					t.Errorf("error %v has lost its cause", err)
				}
			})
		})
	}
}

func TestPanicInHandlerIsAnError(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		var log bytes.Buffer
		var env *weft.Env
		ready := make(chan struct{})
		stop := start(t, local.Config{Encoded: encoded, Log: logTo(&log), Specs: []weft.Spec{
			answering(func(context.Context, *api.FindHostRequest) (*api.Host, error) { panic("lost my map") }),
			client(func(ctx context.Context, e *weft.Env) error {
				env = e
				close(ready)
				return weft.Serve(ctx, e)
			}),
		}})
		<-ready
		_, err := weft.Call(t.Context(), env, api.FindHost, &api.FindHostRequest{})
		wantError(t, err, "hosts.FindHost", "lost my map")
		if api.KindOf(err) != codes.Internal {
			t.Errorf("kind %v, want Internal", api.KindOf(err))
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		wantError(t, errors.New(log.String()), "lost my map", "calls_test.go", "service=hosts")
	})
}

func TestCallHeedsItsContext(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		env := caller(t, local.Config{Encoded: encoded}, answering(func(ctx context.Context, _ *api.FindHostRequest) (*api.Host, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		for range 2 { // under way, and already over
			if _, err := weft.Call(ctx, env, api.FindHost, &api.FindHostRequest{}); api.KindOf(err) != codes.DeadlineExceeded {
				t.Errorf("got %v, want DeadlineExceeded", err)
			}
		}
	})
}

func TestCallBeforeReady(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		called := make(chan error, 1)
		late := server(func(ctx context.Context, env *weft.Env) error {
			err := <-called
			if api.KindOf(err) != codes.Unavailable {
				t.Errorf("got %v, want Unavailable", err)
			}
			weft.Handle(env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) { return nil, nil })
			return weft.Serve(ctx, env)
		})
		start(t, local.Config{Encoded: encoded, Specs: []weft.Spec{late, client(func(ctx context.Context, env *weft.Env) error {
			_, err := weft.Call(ctx, env, api.FindHost, &api.FindHostRequest{})
			called <- err
			return weft.Serve(ctx, env)
		})}})
	})
}

// TestCallNow: a call that may not wait is answered by who is here and has an
// answer; else it fails at once.
func TestCallNow(t *testing.T) {
	env := caller(t, local.Config{}, answering(func(ctx context.Context, req *api.FindHostRequest) (*api.Host, error) {
		switch req.GetAddress() {
		case "elsewhere":
			<-ctx.Done()
			return nil, fmt.Errorf("ask another: %w", ctx.Err())
		case "unknown":
			return nil, api.Errorf(codes.NotFound, "no such host")
		}
		return &api.Host{Mac: req.GetAddress()}, nil
	}))
	for address, want := range map[string]codes.Code{"here": codes.OK, "elsewhere": codes.Unavailable, "unknown": codes.NotFound} {
		host, err := weft.CallNow(env, api.FindHost, &api.FindHostRequest{Address: address})
		if api.KindOf(err) != want || (host.GetMac() == address) != (want == codes.OK) {
			t.Errorf("%s: %v, %v, want %v", address, host, err, want)
		}
	}
}

// BenchmarkRuntimeCall is Call without what weft.Call adds.
func BenchmarkRuntimeCall(b *testing.B) {
	host := &api.Host{}
	var rt weft.Runtime
	specs := []weft.Spec{
		answering(func(context.Context, *api.FindHostRequest) (*api.Host, error) { return host, nil }),
		client(func(context.Context, *weft.Env) error { return nil }),
	}
	start(b, local.Config{Specs: specs, StandIns: map[string]func(context.Context, weft.Runtime) error{
		"gateway": func(ctx context.Context, r weft.Runtime) error {
			rt = r
			err := r.Ready(ctx)
			<-ctx.Done()
			return err
		},
	}})
	method, req := specs[1].Calls[0], &api.FindHostRequest{Address: "10.0.0.1"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rt.Call(b.Context(), method, req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, encoded := range []bool{false, true} {
		b.Run(fmt.Sprintf("encoded=%v", encoded), func(b *testing.B) {
			host := &api.Host{}
			env := caller(b, local.Config{Encoded: encoded}, answering(func(context.Context, *api.FindHostRequest) (*api.Host, error) { return host, nil }))
			req := &api.FindHostRequest{Address: "10.0.0.1"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := weft.Call(b.Context(), env, api.FindHost, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
