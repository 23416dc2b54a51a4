package machine

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// ForEach does something to each of a list, a few at a time, until one fails.
func ForEach[T any](ctx context.Context, list []T, do func(T, context.Context) error) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, v := range list {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error { return do(v, inner) })
	}
	return errors.Join(g.Wait(), ctx.Err())
}
