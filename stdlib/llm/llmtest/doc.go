// Package llmtest is a scripted model server for the tests of this repository: it
// speaks the real wire formats of OpenAI Chat Completions and of Anthropic Messages over
// loopback, streamed and not, and misbehaves on demand. Which of them a reply comes in
// is decided by the path of the request. The code under test is the real client.
//
//  1. A reply is answered to one request, in order; a request too many is refused
//     with status 400, so that nothing retries it and the test sees it.
//  2. The good path never sleeps: it is the baseline of benchmarks.
//  3. A hang ends with the client, with the server, or after MaxHang.
//
// A test says
//
//	srv := llmtest.New(t, llmtest.Calls(llmtest.Call{Name: "add", Args: `{"a":1}`}), llmtest.Text("done"))
//	// … base URL srv.URL(), what was asked in srv.Requests()
//
// and a test binary or a command uses Start, or Serve with a script file. It must
// never be imported by what is shipped. Start reading in reply.go.
package llmtest
