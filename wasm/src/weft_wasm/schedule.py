def auto(program, features):
    return program
