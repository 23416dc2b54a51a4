package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
)

const (
	// storeAfter is how long a change may take before the store is asked whether it answers.
	storeAfter = 4 * time.Second
	// storeTime is how long it has for that.
	storeTime = 4 * time.Second
)

// errNoStore is the error of a change that the store does not take.
var errNoStore = errors.New("the controller's store does not answer, so nothing can be changed; the network goes on, and the change may come about later. " +
	"The store is that of weft up PLAN: start it again on the same data directory, and it adopts its processes. With an external NATS, look there")

// isChange reports whether a method, as gRPC names it, is one that changes something.
func isChange(method string) bool {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/weft.v1."), "/")
	return api.RulesOf(strings.ToLower(service) + "." + name).GetChanges()
}

// whileStored makes a call that changes something. It gives up early if the store, which ask
// asks, does not answer either: what waits for the store waits for long.
func whileStored(ctx context.Context, call, ask func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(storeAfter):
	}
	asking, end := context.WithTimeout(ctx, storeTime)
	defer end()
	silent := status.Code(ask(asking)) == codes.DeadlineExceeded
	select {
	case err := <-done:
		return err
	default:
	}
	if silent {
		cancel()
		<-done
		return errNoStore
	}
	return <-done
}
