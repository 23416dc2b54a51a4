package api

import "context"

// An Answer is a method with what answers it.
type Answer struct {
	Method string                                          // service.Method
	New    func() any                                      // returns an empty request
	Call   func(ctx context.Context, req any) (any, error) // req is of New's type
}

// AnswerBy returns the answer of a method by a function.
func AnswerBy[Req, Resp any](m Method[Req, Resp], f func(context.Context, *Req) (*Resp, error)) Answer {
	return Answer{
		Method: m.Name, New: func() any { return new(Req) },
		Call: func(ctx context.Context, req any) (any, error) {
			resp, err := f(ctx, req.(*Req))
			if err != nil {
				return nil, err
			}
			return resp, nil
		},
	}
}
