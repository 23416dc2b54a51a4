package lab

import (
	"context"
	"sync"
	"time"

	"github.com/weft-sdn/weft/lab/topology"
)

const (
	setupTime    = time.Minute // for one node
	setupsAtOnce = 8
)

// SetUp sets nodes up, several at once, each within a minute: run runs the command of
// one, in the node at an index of the list.
func SetUp(ctx context.Context, list []topology.Setup, run func(ctx context.Context, at int)) {
	places := make(chan struct{}, setupsAtOnce)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range list {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, setupTime)
			defer cancel()
			run(ctx, i)
		})
	}
}
