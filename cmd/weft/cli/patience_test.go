package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A change is given up when the store does not answer, and only then.
func TestWhileStored(t *testing.T) {
	late := func(ctx context.Context) error { <-ctx.Done(); return status.FromContextError(ctx.Err()).Err() }
	after := func(d time.Duration, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			case <-time.After(d):
				return err
			}
		}
	}
	refused := status.Error(codes.PermissionDenied, "no")
	for _, c := range []struct {
		what      string
		call, ask func(context.Context) error
		want      error
		within    time.Duration
	}{
		{"at once", after(0, nil), late, nil, 0},
		{"an error at once", after(0, refused), late, refused, 0},
		{"without a store", late, late, errNoStore, storeAfter + storeTime},
		{"slow, with a store", after(20*time.Second, nil), after(time.Second, nil), nil, 20 * time.Second},
		{"slow, and the store may not be asked", after(20*time.Second, nil), after(time.Second, refused), nil, 20 * time.Second},
		{"while the store is asked", after(storeAfter+time.Second, nil), late, nil, storeAfter + storeTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := whileStored(t.Context(), c.call, c.ask); !errors.Is(err, c.want) || time.Since(began) != c.within {
				t.Errorf("%s: %v after %v", c.what, err, time.Since(began))
			}
		})
	}
}

func TestIsChange(t *testing.T) {
	for method, want := range map[string]bool{
		"/weft.v1.Gateway/ApplyPlan": true, "/weft.v1.Firewall/AddFirewallRules": true, "/weft.v1.Gateway/GetStore": false, "/weft.v1.Gateway/TakeProfile": false, "/nonsense": false,
	} {
		if isChange(method) != want {
			t.Errorf("%s: %v", method, !want)
		}
	}
}
