package testbed

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// sshd drops some of the connections that have not logged in if there are many, more than 10
// unless its MaxStartups says otherwise. So only some begin at a time.
const (
	startsAtOnce = 6
	startTime    = 2 * time.Second // after which one has logged in, as far as is known
	waitTime     = time.Minute     // for others to begin
)

// starts are the places for connections that begin, by where ssh goes.
var starts sync.Map

// admit waits until one more connection to a machine may begin; what it returns says that it
// has ended.
func (k *Machine) admit(ctx context.Context) (ended func(), err error) {
	v, _ := starts.LoadOrStore(fmt.Sprintf("%s %d", k.Host, k.SSHPort), make(chan struct{}, startsAtOnce))
	places, _ := v.(chan struct{})
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	select {
	case places <- struct{}{}:
		leave := sync.OnceFunc(func() { <-places })
		time.AfterFunc(startTime, leave)
		return leave, nil
	case <-ctx.Done():
		return nil, k.failed(fmt.Errorf("too much is begun there at once: %w", ctx.Err()))
	}
}
