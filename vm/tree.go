package vm

import "strconv"

// Tree gives a copy of a value in which leaf was asked for everything that is no list and
// no object; path is where it stands, such as $.a[1]. Kind validation for what nests
// deeper than MaxDepth. It is for namespaces that read or write another format.
func Tree(v any, leaf func(path string, v any) (any, error)) (any, error) {
	return tree(v, "$", 0, leaf)
}

func tree(v any, path string, depth int, leaf func(string, any) (any, error)) (any, error) {
	if depth > MaxDepth {
		return nil, Errorf("validation", "%s is nested deeper than %d", path, MaxDepth)
	}
	var err error
	switch x := v.(type) {
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			if out[i], err = tree(e, path+"["+strconv.Itoa(i+1)+"]", depth+1, leaf); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(x))
		for key, e := range x {
			if out[key], err = tree(e, path+"."+key, depth+1, leaf); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return leaf(path, v)
}

// DropNulls removes null members, which a script then reads as nil; a null in a list
// stays, so that no index shifts.
func DropNulls(v any) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			DropNulls(e)
		}
	case map[string]any:
		for k, e := range x {
			if e == nil {
				delete(x, k)
			} else {
				DropNulls(e)
			}
		}
	}
}
