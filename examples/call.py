from dragoman.sync import call_agent

print(call_agent(skill="greet", input={"name": "Ada"}).text)
