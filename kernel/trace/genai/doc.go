// Package genai turns the facts of a run into OpenTelemetry spans by the conventions
// for generative AI: invoke_agent for the run, chat for each model call, execute_tool
// for each tool call. Every name that a span has stands in names.go, with the version
// of the conventions, which are in development and change.
//
// A span says who, when, how much and how it ended. What was asked, answered, passed to
// a tool or returned by one is in the log of the run and in no span; the texts of
// errors neither, since they quote such things.
//
// Facts come in the order in which things happened and are taken without waiting.
package genai
