// An empty file: it lets upvalues.go declare a function without a body.
