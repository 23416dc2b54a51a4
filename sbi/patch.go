package sbi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A PatchItem is one operation of a JSON Patch (RFC 6902).
type PatchItem struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// A ChangeItem tells what an operation has changed (TS 29.571).
type ChangeItem struct {
	Op       string          `json:"op"` // ADD, MOVE, REMOVE or REPLACE
	Path     string          `json:"path"`
	From     string          `json:"from,omitempty"`
	NewValue json.RawMessage `json:"newValue,omitempty"`
}

// Bounds of a patch.
const mostOperations = 128

var patchLimits = Limits{Octets: 1 << 20, Depth: DefaultLimits.Depth, Values: DefaultLimits.Values}

// ParsePatch reads a JSON Patch. An operation on the whole document, with an
// empty path, is refused.
func ParsePatch(b []byte) ([]PatchItem, error) {
	if err := patchLimits.Check(b); err != nil {
		return nil, err
	}
	var items []PatchItem
	if err := json.Unmarshal(b, &items); err != nil {
		return nil, Problem(http.StatusBadRequest, InvalidMessageFormat, "want an array of operations: "+err.Error())
	}
	if len(items) == 0 || len(items) > mostOperations {
		return nil, Problem(http.StatusBadRequest, InvalidMessageFormat, fmt.Sprintf("%d operations: want 1 to %d", len(items), mostOperations))
	}
	for i, item := range items {
		var err error
		switch item.Op {
		case "add", "replace", "test":
			if item.Value == nil {
				err = errors.New("has no value")
			}
		case "copy", "move":
			if item.From == "" || item.From[0] != '/' {
				err = errors.New("want a JSON pointer for from")
			}
		case "remove":
		default:
			err = errors.New("want add, copy, move, remove, replace or test for op")
		}
		if item.Path == "" || item.Path[0] != '/' {
			err = errors.New("want the JSON pointer of a member")
		}
		if err != nil {
			return nil, failed(i, item, err)
		}
	}
	return items, nil
}

// Apply returns a JSON object with a patch applied to it, or the ProblemDetails
// of the first operation that fails.
func Apply(document []byte, items []PatchItem) ([]byte, error) {
	d, err := valueOf(document)
	if err != nil {
		return nil, err
	}
	room := DefaultLimits.Values
	for i, item := range items {
		if d, err = apply(d, item, &room); err != nil {
			return nil, failed(i, item, err)
		}
	}
	return json.Marshal(d)
}

// apply carries out an operation; room is how many values may still be copied.
func apply(d any, item PatchItem, room *int) (any, error) {
	path := tokens(item.Path)
	switch item.Op {
	case "remove":
		d, _, err := at(d, path, take)
		return d, err
	case "test":
		v, err := valueOf(item.Value)
		if err != nil {
			return nil, err
		}
		d, got, err := at(d, path, see)
		if err == nil && !reflect.DeepEqual(got, v) {
			err = errors.New("the value is another")
		}
		return d, err
	case "replace":
		v, err := valueOf(item.Value)
		if err != nil {
			return nil, err
		}
		d, _, err = at(d, path, func(node any, token string) (any, any, error) {
			if node, _, err = take(node, token); err != nil {
				return nil, nil, err
			}
			return insert(node, token, v)
		})
		return d, err
	case "move":
		if item.Path == item.From {
			return d, nil
		}
		if strings.HasPrefix(item.Path, item.From+"/") {
			return nil, errors.New("moves a value into itself")
		}
		d, v, err := at(d, tokens(item.From), take)
		if err != nil {
			return nil, err
		}
		return add(d, path, v)
	case "copy":
		d, v, err := at(d, tokens(item.From), see)
		if err != nil {
			return nil, err
		}
		if v = clone(v, room); *room < 0 {
			return nil, errors.New("copies too much")
		}
		return add(d, path, v)
	}
	v, err := valueOf(item.Value)
	if err != nil {
		return nil, err
	}
	return add(d, path, v)
}

func add(d any, path []string, v any) (any, error) {
	d, _, err := at(d, path, func(node any, token string) (any, any, error) { return insert(node, token, v) })
	return d, err
}

// at calls act with the array or object that has the last token of a path, and
// puts what that returns in its place.
func at(node any, path []string, act func(node any, token string) (now, value any, err error)) (now, value any, err error) {
	if len(path) == 1 {
		return act(node, path[0])
	}
	_, inner, err := see(node, path[0])
	if err != nil {
		return nil, nil, err
	}
	if inner, value, err = at(inner, path[1:], act); err != nil {
		return nil, nil, err
	}
	switch n := node.(type) {
	case map[string]any:
		n[path[0]] = inner
	case []any:
		i, _ := index(path[0], len(n)-1) // see has found it
		n[i] = inner
	}
	return node, value, nil
}

// see returns a node and the value that it has there.
func see(node any, token string) (now, value any, err error) {
	switch n := node.(type) {
	case map[string]any:
		if v, ok := n[token]; ok {
			return n, v, nil
		}
	case []any:
		if i, ok := index(token, len(n)-1); ok {
			return n, n[i], nil
		}
	}
	return nil, nil, errors.New("there is no such value")
}

// take returns a node without the value that it has there, and the value.
func take(node any, token string) (now, value any, err error) {
	_, value, err = see(node, token)
	if err != nil {
		return nil, nil, err
	}
	switch n := node.(type) {
	case map[string]any:
		delete(n, token)
	case []any:
		i, _ := index(token, len(n)-1)
		node = slices.Delete(n, i, i+1)
	}
	return node, value, nil
}

// insert returns a node with a value there: before what an array has there.
func insert(node any, token string, v any) (now, value any, err error) {
	switch n := node.(type) {
	case map[string]any:
		n[token] = v
		return n, v, nil
	case []any:
		if token == "-" {
			return append(n, v), v, nil
		}
		if i, ok := index(token, len(n)); ok {
			return slices.Insert(n, i, v), v, nil
		}
	}
	return nil, nil, errors.New("there is no array or object for it")
}

// index reads an index of an array, from 0 to last.
func index(token string, last int) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && i >= 0 && i <= last && strconv.Itoa(i) == token
}

// clone copies a value, and takes how many values that is from room.
func clone(v any, room *int) any {
	if *room--; *room < 0 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for name, item := range v {
			c[name] = clone(item, room)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, item := range v {
			c[i] = clone(item, room)
		}
		return c
	}
	return v
}

// tokens splits a JSON pointer.
func tokens(pointer string) []string {
	all := strings.Split(pointer[1:], "/")
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}
	return all
}

// valueOf reads a JSON text; numbers stay as they are written.
func valueOf(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// failed returns the problem of an operation.
func failed(i int, item PatchItem, err error) *ProblemDetails {
	return invalid(OptionalMemberIncorrect, item.Path, fmt.Sprintf("%v (failed operation index= %d)", err, i))
}

// Changes tells what a patch has changed.
func Changes(items []PatchItem) []ChangeItem {
	var all []ChangeItem
	for _, item := range items {
		op := strings.ToUpper(item.Op)
		switch op {
		case "TEST":
			continue
		case "COPY":
			op = "ADD"
		}
		all = append(all, ChangeItem{Op: op, Path: item.Path, From: item.From, NewValue: item.Value})
	}
	return all
}
